// SPDX-License-Identifier: Apache-2.0

package docsite

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown reads what GitHub shows. Its HTML is the repository's own.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()),
)

// page is a document.
type page struct {
	file     string
	source   []byte
	document ast.Node
}

// read finds the documents: those of the root, of the chart and of docs.
func read(repository fs.FS) (map[string]*page, error) {
	pages := map[string]*page{}
	add := func(file string) error {
		source, err := fs.ReadFile(repository, file)
		if err != nil {
			return err
		}
		context := parser.NewContext(parser.WithIDs(anchors{}))
		pages[file] = &page{file: file, source: source, document: markdown.Parser().Parse(text.NewReader(source), parser.WithContext(context))}
		return nil
	}
	err := fs.WalkDir(repository, "docs", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".md" {
			return err
		}
		return add(file)
	})
	return pages, errors.Join(err, add("README.md"), add("CONTRIBUTING.md"), add("CHANGELOG.md"), add("charts/serin/README.md"))
}

// anchors makes the anchors that GitHub makes. The documents have each heading once.
type anchors struct{}

var (
	linked   = regexp.MustCompile(`\]\([^)]*\)`)
	unspoken = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Generate implements parser.IDs.
func (anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	plain := linked.ReplaceAllString(strings.TrimSpace(string(heading)), "")
	return []byte(strings.ReplaceAll(unspoken.ReplaceAllString(strings.ToLower(plain), ""), " ", "-"))
}

// Put implements parser.IDs.
func (anchors) Put([]byte) {}

// navigation are the links of the index under each of its headings.
func navigation(p *page) (groups []group) {
	for n := p.document.FirstChild(); n != nil; n = n.NextSibling() {
		if h, is := n.(*ast.Heading); is && h.Level == 2 {
			groups = append(groups, group{Title: p.plain(h)})
			continue
		}
		if len(groups) == 0 || groups[len(groups)-1].Title == "Questions" {
			continue
		}
		g := &groups[len(groups)-1]
		// The walk never fails: the function returns no error.
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if l, is := n.(*ast.Link); is && entering && !strings.Contains(string(l.Destination), "#") {
				g.Entries = append(g.Entries, entry{Text: p.plain(l), file: path.Join(path.Dir(p.file), string(l.Destination))})
			}
			return ast.WalkContinue, nil
		})
	}
	kept := groups[:0]
	for _, g := range groups {
		if len(g.Entries) > 0 {
			kept = append(kept, g)
		}
	}
	return kept
}

// plain is the text of a node without its form.
func (p *page) plain(n ast.Node) string {
	var out strings.Builder
	// As above.
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, is := n.(*ast.Text); is && entering {
			out.Write(t.Segment.Value(p.source))
			if t.SoftLineBreak() {
				out.WriteByte(' ')
			}
		}
		if n.Type() == ast.TypeBlock && !entering {
			out.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

// title is the first heading.
func (p *page) title() string {
	for n := p.document.FirstChild(); n != nil; n = n.NextSibling() {
		if h, is := n.(*ast.Heading); is {
			return p.plain(h)
		}
	}
	return p.file
}

// hit is what the search finds: a heading of a page with the text below it.
type hit struct {
	Title   string `json:"title"`
	Heading string `json:"heading"`
	URL     string `json:"url"`
	Text    string `json:"text"`
}

// sections are the parts of a page that the search finds.
func (p *page) sections(url string) (found []hit) {
	now := hit{Title: p.title(), URL: url}
	for n := p.document.FirstChild(); n != nil; n = n.NextSibling() {
		h, is := n.(*ast.Heading)
		if !is {
			now.Text += " " + p.plain(n) + " " + p.code(n)
			continue
		}
		if strings.TrimSpace(now.Text) != "" {
			found = append(found, now)
		}
		now = hit{Title: p.title(), Heading: p.plain(h), URL: url}
		if id, has := h.AttributeString("id"); has {
			now.URL += "#" + string(id.([]byte))
		}
	}
	for i := range found {
		found[i].Text = strings.TrimSpace(found[i].Text)
	}
	return append(found, now)
}

// code is the text of a block of code, which is no child of it.
func (p *page) code(n ast.Node) string {
	if n.Kind() != ast.KindFencedCodeBlock {
		return ""
	}
	return string(n.Lines().Value(p.source))
}
