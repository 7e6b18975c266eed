// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Claims of the documents name the commands that show them. These tests fail when such a
// command does not run anything any more.

var (
	// fenced is a block of code; its first group is the language.
	fenced = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")
	// span is code within a sentence, which may go on in the next line.
	span = regexp.MustCompile("`([^`]+)`")
	// made is what a line of code has make do.
	made = regexp.MustCompile(`^make((?: [a-z][a-z0-9-]*)+)`)
	// target is a rule of a Makefile.
	target = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	// tested is what a line of code has go test do.
	tested = regexp.MustCompile(`^(?:cd (\S+) && )?go test (.+)`)
	// chosen are the tests, benchmarks or fuzz targets that a flag of go test chooses.
	chosen = regexp.MustCompile(`-(?:run|bench|fuzz) (?:'([^']*)'|(\S+))`)
	// declared is a function that go test can run.
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]*)\(`)
)

func TestCommandsThatDocumentsNameRunSomething(t *testing.T) {
	targets := makeTargets(t)
	for _, file := range sources(t, ".md") {
		for _, command := range commandsIn(t, file) {
			if m := made.FindStringSubmatch(command); m != nil {
				for name := range strings.FieldsSeq(m[1]) {
					if !targets[name] {
						t.Errorf("%s: make has no target %s: %s", file, name, command)
					}
				}
			}
			if m := tested.FindStringSubmatch(command); m != nil {
				checkTested(t, file, command, m[1], m[2])
			}
		}
	}
}

// commandsIn are the lines of the shell and the code within sentences of a document.
func commandsIn(t *testing.T, file string) (commands []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		if block[1] == "sh" || block[1] == "console" {
			for line := range strings.Lines(block[2]) {
				commands = append(commands, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
			}
		}
	}
	for _, code := range span.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		commands = append(commands, strings.Join(strings.Fields(code[1]), " "))
	}
	return commands
}

func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	targets := map[string]bool{}
	for _, file := range []string{"Makefile", "e2e/cluster.mk"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range target.FindAllStringSubmatch(string(content), -1) {
			targets[m[1]] = true
		}
	}
	return targets
}

// checkTested looks for a function that each pattern of the command chooses in its packages.
func checkTested(t *testing.T, file, command, folder, args string) {
	t.Helper()
	var functions []string
	for arg := range strings.FieldsSeq(args) {
		if arg != "." && !strings.HasPrefix(arg, "./") || strings.Contains(arg, "…") {
			continue
		}
		found := functionsIn(t, filepath.Join(folder, arg))
		if len(found) == 0 {
			t.Errorf("%s: there is nothing to test in %s: %s", file, arg, command)
		}
		functions = append(functions, found...)
	}
	for _, m := range chosen.FindAllStringSubmatch(args, -1) {
		pattern, _, _ := strings.Cut(strings.ReplaceAll(m[1]+m[2], `\|`, "|"), "/") // a table escapes the bar
		choice, err := regexp.Compile(pattern)
		if err != nil {
			t.Errorf("%s: %v: %s", file, err, command)
			continue
		}
		if pattern != "^$" && !slices.ContainsFunc(functions, choice.MatchString) {
			t.Errorf("%s: %s chooses no test: %s", file, pattern, command)
		}
	}
}

// functionsIn are what go test can run in a package, or in all packages below a folder with
// dots at its end.
func functionsIn(t *testing.T, name string) (functions []string) {
	t.Helper()
	folder, below := strings.CutSuffix(name, "/...")
	for _, file := range testFiles(t) {
		if dir := filepath.Dir(file); dir != folder && (!below || !strings.HasPrefix(dir, folder+"/")) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(content, -1) {
			functions = append(functions, string(m[1]))
		}
	}
	return functions
}

// promise is a row of the table of promises.
var promise = regexp.MustCompile(`(?m)^\| \*\*.*\|$`)

func TestEveryPromiseNamesWhatShowsIt(t *testing.T) {
	const page = "docs/promises.md"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rows := promise.FindAllString(string(content), -1)
	for _, row := range rows {
		if !namedTest.MatchString(row) && !strings.Contains(row, "`make ") {
			t.Errorf("%s: neither a test nor a command shows this: %s", page, row)
		}
	}
	if len(rows) < 20 {
		t.Errorf("%s has %d promises: its table has another form", page, len(rows))
	}
}

var (
	// absolute is a word that promises something without exception.
	absolute = regexp.MustCompile(`(?i)\b(?:never|always|exactly|only|nothing\s+else)\b`)
	// heading names what its section is about, and "read-only" is a kind of access: neither promises anything.
	heading = regexp.MustCompile(`(?m)^ *#+ .*$|\bread-only\b`)
	// passage is a paragraph, a row of a table or an item of a list.
	passage = regexp.MustCompile(`\n\s*\n|\n\s*(?:[*|]|\d+\.) `)
	// item is the mark before a row of a table or an item of a list.
	item = regexp.MustCompile(`^\s*(?:[*|]|\d+\.) `)
	// unpromised are pages of what was, and pages that are generated.
	unpromised = regexp.MustCompile(`^docs/(?:decisions|reference|benchmarks|lint)/|^docs/kubectl-traffic/kubectl_|^CHANGELOG\.md$|/testdata/`)
	// shown is what a passage shows a promise by: a test, a command, or a row of the promises.
	shown = regexp.MustCompile(namedTest.String() + "|`make [a-z]|go test |promises\\.md")
)

// TestWhatIsPromisedWithoutExceptionIsShown: a sentence of README.md or docs with "never", "always", "exactly", "only"
// or "nothing else" has what shows it in the same paragraph, or is rewritten to say less.
func TestWhatIsPromisedWithoutExceptionIsShown(t *testing.T) {
	unused := maps.Clone(shownElsewhere)
	for _, p := range passages(t) {
		word := absolute.FindString(heading.ReplaceAllString(p.said, ""))
		if word == "" || shown.MatchString(p.text) {
			continue
		}
		if text := oneLine(p.text); !mentions(text, shownElsewhere, unused) {
			t.Errorf("%s: %q has neither a test nor a command that shows it: %s", p.page, word, text)
		}
	}
	for phrase := range unused {
		t.Errorf("no sentence without exception is in %q: remove it from this test", phrase)
	}
}

// mentions is whether a text has one of the phrases. Each that it has is taken from those that are unused.
func mentions(text string, phrases, unused map[string]string) (found bool) {
	for phrase := range phrases {
		if strings.Contains(text, phrase) {
			delete(unused, phrase)
			found = true
		}
	}
	return found
}

// shownElsewhere are phrases of a page that is generated from the chart's comments, which name no tests, and of
// sentences that say what you do and not what Serin does: each with the tests or the reason.
var shownElsewhere = map[string]string{
	"nginx (Serin's own proxies, only while a split exists)":   "TestTrafficSplit",
	"has something that only the operator can restore.":        "TestUninstallingIsRefusedWhileOnlyTheOperatorCanRestore",
	"only users with the verb \"promote\" may change it":       "TestADecisionTakesTheVerbPromote",
	"Users can have Serin do only what they may do themselves": "TestARolloutHasSerinDoWhatItsAuthorMayDo, TestATemplateRunsJobsForThoseWhoMayCreateThem",
	"only behind a proxy that sets this header itself":         "what you have to see to",
}

// said is a passage of a page, its words without code and targets of links, and the paragraph that leads to it when it
// is in a list or a table.
type said struct{ page, text, said, lead string }

// passages are those of the pages that promise something.
func passages(t *testing.T) (all []said) {
	t.Helper()
	pages := 0
	for _, file := range sources(t, ".md") {
		if unpromised.MatchString(file) {
			continue
		}
		pages++
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range sectionsOf(fenced.ReplaceAllString(string(content), "")) {
			all = append(all, passagesOf(file, section)...)
		}
	}
	if pages < 40 {
		t.Fatalf("%d pages were read", pages)
	}
	return all
}

// passagesOf are those of a section.
func passagesOf(file, section string) (all []said) {
	lead, begin, listed := "", 0, false
	for _, at := range append(passage.FindAllStringIndex(section, -1), []int{len(section), len(section)}) {
		p := said{page: file, text: section[begin:at[0]]}
		p.said = linkTarget.ReplaceAllString(span.ReplaceAllString(p.text, ""), "]")
		if listed || item.MatchString(p.text) {
			p.lead = lead
		} else {
			lead = p.text
		}
		all = append(all, p)
		begin, listed = at[1], item.MatchString(strings.TrimLeft(section[at[0]:at[1]], "\n"))
	}
	return all
}

func TestAListAndATableHaveTheParagraphThatLeadsToThem(t *testing.T) {
	const section = "## Head\n\nThe first.\n* a\n* b\n\nThe second:\n\n| c | d |\n|---|---|\n| e | f |\n\nThe third."
	leads := map[string]string{"## Head": "", "The first.": "", "a": "The first.", "b": "The first.", "The second:": "", "e | f |": "The second:", "The third.": ""}
	found := 0
	for _, p := range passagesOf("", section) {
		if want, known := leads[p.text]; known {
			found++
			if p.lead != want {
				t.Errorf("%q leads to %q, want %q", p.lead, p.text, want)
			}
		}
	}
	if found != len(leads) {
		t.Errorf("%d of %d passages were found", found, len(leads))
	}
}

// sectionsOf are the parts of a page, each with its heading.
func sectionsOf(page string) (sections []string) {
	begin := 0
	for _, at := range regexp.MustCompile(`(?m)^#+ `).FindAllStringIndex(page, -1) {
		sections = append(sections, page[begin:at[0]])
		begin = at[0]
	}
	return append(sections, page[begin:])
}

// linkTarget is where a link leads, whose words are those of another page.
var linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
