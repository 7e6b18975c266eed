// SPDX-License-Identifier: Apache-2.0

package docsite

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"
)

// made is the site of this repository.
func made(t *testing.T) Site {
	t.Helper()
	site, err := Make(os.DirFS("../.."), "https://example.invalid/serin")
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// parsed are the links and pictures of a page, and its anchors.
func parsed(t *testing.T, content []byte) (leads []string, anchors map[string]bool) {
	t.Helper()
	anchors = map[string]bool{}
	z := html.NewTokenizer(bytes.NewReader(content))
	for z.Next() != html.ErrorToken {
		for _, a := range z.Token().Attr {
			switch a.Key {
			case "href", "src":
				leads = append(leads, a.Val)
			case "id":
				anchors[a.Val] = true
			}
		}
	}
	if !errors.Is(z.Err(), io.EOF) {
		t.Fatal(z.Err())
	}
	return leads, anchors
}

func TestEveryLinkOfTheSiteLeadsSomewhere(t *testing.T) {
	site, anchors := made(t), map[string]map[string]bool{}
	for name, content := range site {
		_, anchors[name] = parsed(t, content)
	}
	count := 0
	for name, content := range site {
		if path.Ext(name) != ".html" {
			continue
		}
		leads, _ := parsed(t, content)
		for _, lead := range leads {
			u, err := url.Parse(lead)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			file := name
			if u.Path != "" {
				file = path.Join(path.Dir(name), u.Path)
			}
			count++
			if site[file] == nil || u.Fragment != "" && !anchors[file][u.Fragment] {
				t.Errorf("%s links to %s, which is not there", name, lead)
			}
		}
	}
	if count < 1000 {
		t.Errorf("only %d links were checked", count)
	}
}

// Two clicks: the index is linked from every page, and the search knows each section.
func TestEveryPageHasTheNavigationAndIsFound(t *testing.T) {
	site := made(t)
	for _, want := range []string{`"heading":"Get the Service back by hand","url":"docs/how-to/stop-using-it.html#get-the-service-back-by-hand"`, "decide Promote"} {
		if !strings.Contains(string(site["search-index.js"]), want) {
			t.Errorf("the search does not know %s", want)
		}
	}
	for name, content := range site {
		if !strings.HasPrefix(name, "docs/") || path.Ext(name) != ".html" {
			continue
		}
		for _, want := range []string{"<summary>How to</summary>", ">Blue-green</a>", "search.js"} {
			if !bytes.Contains(content, []byte(want)) {
				t.Errorf("%s does not have %s", name, want)
			}
		}
	}
}

func TestLinksToWhatIsNoPageLeadToTheSource(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	site, err := Make(fstest.MapFS{
		"README.md": file("# A\n[docs](docs/README.md#some-kind-of-it)\n"), "CONTRIBUTING.md": file("# B\n"), "CHANGELOG.md": file("# C\n"), "charts/serin/README.md": file("# D\n"),
		"docs/README.md": file("# E\n\n## Some `kind` of it\n[an example](../examples/x.yaml), [a page](how-to/f.md)\n"), "docs/how-to/f.md": file("# F\n![p](p.svg)\n"), "docs/how-to/p.svg": file("<svg/>"),
	}, "https://example.invalid/serin")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"docs/index.html":    `<a href="https://example.invalid/serin/blob/main/examples/x.yaml">an example</a>, <a href="../docs/how-to/f.html">a page</a>`,
		"readme.html":        `<a href="docs/index.html#some-kind-of-it">docs</a>`,
		"docs/how-to/f.html": `<img src="p.svg" alt="p">`,
		"docs/how-to/p.svg":  "<svg/>",
		"index.html":         "url=docs/index.html",
	} {
		if !strings.Contains(string(site[name]), want) {
			t.Errorf("%s does not have %s:\n%s", name, want, site[name])
		}
	}
	if !strings.Contains(string(site["docs/index.html"]), `<h2 id="some-kind-of-it">`) {
		t.Errorf("no anchor:\n%s", site["docs/index.html"])
	}
}

func TestADocumentThatIsMissingIsAnError(t *testing.T) {
	if _, err := Make(fstest.MapFS{"docs/README.md": &fstest.MapFile{}}, ""); err == nil {
		t.Error("no error")
	}
}
