// SPDX-License-Identifier: Apache-2.0

package docsite

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// index is the page whose headings and links are the navigation.
const index = "docs/README.md"

//go:embed theme
var theme embed.FS

var layout = template.Must(template.ParseFS(theme, "theme/page.html"))

// Site are the files of a site, by their paths.
type Site map[string][]byte

// entry is a link of the navigation; file is what it leads to.
type entry struct {
	Text, URL string
	Current   bool
	file      string
}

// group is a heading of the index with its links.
type group struct {
	Title   string
	Entries []entry
}

// Make reads the documents of a repository. Links to what is no page lead to source.
func Make(repository fs.FS, source string) (Site, error) {
	pages, err := read(repository)
	if err != nil {
		return nil, err
	}
	b := builder{pages: pages, repository: repository, source: source, site: Site{}}
	start := pages[index]
	if start == nil {
		return nil, fmt.Errorf("%s is missing", index)
	}
	b.navigation = navigation(start)
	for _, p := range pages {
		if err := b.add(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
	}
	slices.SortFunc(b.found, func(x, y hit) int { return strings.Compare(x.URL, y.URL) })
	found, err := json.Marshal(b.found)
	if err != nil {
		return nil, err
	}
	b.site["search-index.js"] = slices.Concat([]byte("const documents = "), found, []byte(";\n"))
	for _, name := range []string{"style.css", "search.js"} {
		if b.site[name], err = theme.ReadFile("theme/" + name); err != nil {
			return nil, err
		}
	}
	b.site["index.html"] = []byte(`<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=` +
		target(index) + `"><a href="` + target(index) + `">Documentation</a>` + "\n")
	return b.site, nil
}

// builder is a site in the making.
type builder struct {
	pages      map[string]*page
	repository fs.FS
	source     string
	navigation []group
	found      []hit
	site       Site
}

// target is where the page of a Markdown file is in the site.
func target(file string) string {
	name := strings.TrimSuffix(file, ".md")
	if path.Base(name) == "README" {
		name = path.Join(path.Dir(name), "index")
		if name == "index" {
			name = "readme" // index.html is the way in
		}
	}
	return name + ".html"
}

// root leads from a page to the beginning of the site.
func root(file string) string { return strings.Repeat("../", strings.Count(target(file), "/")) }

func (b *builder) add(p *page) error {
	if err := b.rewrite(p); err != nil {
		return err
	}
	b.found = append(b.found, p.sections(target(p.file))...)
	content := bytes.Buffer{}
	if err := markdown.Renderer().Render(&content, p.source, p.document); err != nil {
		return err
	}
	groups := make([]group, len(b.navigation))
	for i, g := range b.navigation {
		groups[i].Title = g.Title
		for _, e := range g.Entries {
			e.URL, e.Current = root(p.file)+target(e.file), e.file == p.file
			groups[i].Entries = append(groups[i].Entries, e)
		}
	}
	out := bytes.Buffer{}
	err := layout.Execute(&out, map[string]any{
		"Title": p.title(), "Root": root(p.file), "Groups": groups, "Home": root(p.file) + target(index),
		"Source":  b.source + "/blob/main/" + p.file,
		"Content": template.HTML(content.String()), //nolint:gosec // the repository's own documents
	})
	b.site[target(p.file)] = out.Bytes()
	return err
}

// rewrite has the links and pictures of a page lead to the pages and files of the site.
func (b *builder) rewrite(p *page) error {
	return ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(b.link(p.file, string(n.Destination)))
		case *ast.Image:
			return ast.WalkContinue, b.picture(p.file, string(n.Destination))
		}
		return ast.WalkContinue, nil
	})
}

// link is a link of a page as the site has it.
func (b *builder) link(file, destination string) string {
	if strings.Contains(destination, "://") || strings.HasPrefix(destination, "#") || strings.HasPrefix(destination, "mailto:") {
		return destination
	}
	name, fragment, hasFragment := strings.Cut(destination, "#")
	name = path.Join(path.Dir(file), name)
	if b.pages[name] == nil {
		return b.source + "/blob/main/" + name
	}
	url := root(file) + target(name)
	if hasFragment {
		url += "#" + fragment
	}
	return url
}

// picture takes a picture into the site.
func (b *builder) picture(file, destination string) error {
	name := path.Join(path.Dir(file), destination)
	content, err := fs.ReadFile(b.repository, name)
	b.site[name] = content
	return err
}
