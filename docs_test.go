// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a Markdown link or an image; its first group is the target.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)|<img[^>]+src="([^"]+)"`)

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	for _, file := range sources(t, ".md") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(span.ReplaceAllString(fenced.ReplaceAllString(string(content), ""), ""), -1) {
			target, err := url.Parse(match[1] + match[2])
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if target.Scheme != "" {
				continue // another site
			}
			if target.Path == "" {
				target.Path = filepath.Base(file) // a heading of the same page
			}
			page := filepath.Join(filepath.Dir(file), target.Path)
			if _, err := os.Stat(page); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s links to %s, which is not there", file, target.Path)
			} else if target.Fragment != "" && filepath.Ext(page) == ".md" && !anchors(t, page)[target.Fragment] {
				t.Errorf("%s links to %s#%s, and there is no such heading", file, target.Path, target.Fragment)
			}
		}
	}
}

var (
	title = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// unspoken is what GitHub leaves out when it makes an anchor of a heading.
	unspoken = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the headings of a page, as links name them.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, heading := range title.FindAllStringSubmatch(fenced.ReplaceAllString(string(content), ""), -1) {
		plain := link.ReplaceAllString(heading[1], "") // of a link, the text stays
		all[strings.ReplaceAll(unspoken.ReplaceAllString(strings.ToLower(plain), ""), " ", "-")] = true
	}
	return all
}

func TestEverySourceFileNamesItsLicence(t *testing.T) {
	const licence = "// SPDX-License-Identifier: Apache-2.0\n\n"
	for _, file := range sources(t, ".go") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(content, []byte(licence)) && !strings.Contains(file, "zz_generated") {
			t.Errorf("%s does not begin with %q and an empty line", file, strings.TrimSpace(licence))
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	folders := map[string]bool{}
	for _, file := range sources(t, ".go") {
		if folder := filepath.Dir(file); folder != "." && !strings.HasSuffix(file, "_test.go") {
			folders[folder] = true
		}
	}
	for folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "doc.go")); errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has no doc.go: say there what the package is for and what it must not do", folder)
		}
	}
}

var (
	// namedTest is a test that a document names.
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	// trap is a row of the table of traps.
	trap = regexp.MustCompile(`(?m)^\| [0-9]+ \|.*$`)
)

func TestTrapsAreHeldByTestsThatExist(t *testing.T) {
	const page = "docs/traps.md"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rows := trap.FindAllString(string(content), -1)
	for _, row := range rows {
		if !namedTest.MatchString(row) {
			t.Errorf("%s: no test holds this trap: %s", page, row)
		}
	}
	if len(rows) == 0 {
		t.Errorf("%s has no table of traps", page)
	}
}

// naming are tests that say which other tests play, or show, what they leave out.
var naming = []string{"claims_test.go", "figures_test.go", "e2e/integration/rolloutdocs_test.go", "e2e/integration/frontpages_test.go"}

func TestTestsThatDocumentsNameExist(t *testing.T) {
	tests := declaredTests(t)
	for _, file := range naming {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(content), -1) {
			if !tests[name] {
				t.Errorf("%s names %s, and there is no such test", file, name)
			}
		}
	}
	for _, file := range sources(t, ".md") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range namedTest.FindAllStringSubmatch(string(content), -1) {
			if !tests[match[1]] {
				t.Errorf("%s names %s, and there is no such test", file, match[1])
			}
		}
	}
}

// declaredTests are the test functions of the repository, with those of nested
// modules.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, file := range testFiles(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllSubmatch(content, -1) {
			tests[string(match[1])] = true
		}
	}
	return tests
}

// testFiles are the files with tests, also those of nested modules.
func testFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(file, "_test.go"):
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestTheIndexOfDecisionsIsComplete: the index has each decision with its title.
func TestTheIndexOfDecisionsIsComplete(t *testing.T) {
	folder := filepath.Join("docs", "decisions")
	index, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "[0-9]*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("decisions: %d files, %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(content), "# "), "\n")
		name := filepath.Base(file)
		if row := "| [" + name[:3] + "](" + name + ") | " + title + " |"; !strings.Contains(string(index), row) {
			t.Errorf("the index lacks the line %s", row)
		}
	}
}

// otherToolsToo finds a kubectl command that names, without a group, a resource that Argo Rollouts or OpenKruise has as
// well: where both tools are installed, kubectl takes whichever group comes first.
var otherToolsToo = regexp.MustCompile(`kubectl(?: -n \S+)? (?:get|describe|wait|delete|edit|patch|explain|annotate|label|events) (?:[^ |]+ )*?(?:rollouts?|(?:cluster)?analysistemplates?)(?:[/ ,` + "`" + `]|$)`)

func TestCommandsNameTheGroupOfAResourceThatOtherToolsHaveToo(t *testing.T) {
	for command, ambiguous := range map[string]bool{
		"kubectl get rollout website":                        true,
		"kubectl -n shop get rollouts -o wide":               true,
		"kubectl wait --for=condition=Ready rollout/website": true,
		"kubectl delete analysistemplates latency":           true,
		"kubectl get rollouts.serin.dev website":             false,
		"kubectl traffic rollout get website":                false,
	} {
		if got := otherToolsToo.MatchString(command); got != ambiguous {
			t.Errorf("%q: ambiguous is %v, want %v", command, got, ambiguous)
		}
	}
	for _, file := range append(sources(t, ".md"), sources(t, ".txt")...) {
		if file == "CHANGELOG.md" || strings.HasPrefix(file, "docs/decisions/") {
			continue // says what was
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(content), "\n") {
			if command := otherToolsToo.FindString(line); command != "" {
				t.Errorf("%s: %q names a resource without its group, as rollouts.serin.dev does", file, command)
			}
		}
	}
}

// withoutExample are the how-to pages that need no manifests of their own, or whose manifests depend on what is there.
var withoutExample = map[string]string{
	"dashboard-in-the-cluster":   "values of the chart, and the cluster's own login",
	"migrate-from-argo-rollouts": "kubectl traffic migrate writes the manifests",
	"migrate-from-flagger":       "kubectl traffic migrate writes the manifests",
	"other-tools":                "the manifests are those of Flagger and Argo Rollouts",
	"traces":                     "values of the chart",
	"stop-using-it":              "it removes what is there",
}

// example is a link to a folder of examples.
var example = regexp.MustCompile(`\]\(\.\./\.\./examples/([a-z-]+)`)

func TestEachHowToPageHasAnExample(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("docs", "how-to", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	linked := map[string]bool{}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		links := example.FindAllSubmatch(content, -1)
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if _, excused := withoutExample[name]; excused == (len(links) > 0) {
			t.Errorf("%s has to link to an example, or to be among those without one, with the reason", page)
		}
		for _, l := range links {
			linked[string(l[1])] = true
		}
	}
	folders, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		// "make demo" plays the one, and the other is of the reference.
		if name := folder.Name(); folder.IsDir() && !linked[name] && name != "demo" && name != "mirror" {
			t.Errorf("no how-to page links to examples/%s", name)
		}
	}
}
