// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is something of a page that can be played: the code between two fences, or
// a comment that readers do not see.
type block struct {
	// kind is the language of the code, or "comment".
	kind, text string
	line       int
}

// section is what stands below one heading.
type section struct {
	heading string
	blocks  []block
}

// page reads a document: its sections that have something to play.
func page(t *testing.T, name string) []section {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return sectionsOf(string(content))
}

var (
	heading = regexp.MustCompile(`^##+ (.*)`)
	fence   = regexp.MustCompile("^( *)```([a-z]*)$")
	comment = regexp.MustCompile(`^<!-- (.*) -->$`)
)

func sectionsOf(content string) (out []section) {
	now := section{}
	var open *block
	var indent string
	for i, line := range strings.Split(content, "\n") {
		switch f := fence.FindStringSubmatch(line); {
		case open != nil && f != nil:
			now.blocks, open = append(now.blocks, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case f != nil:
			open, indent = &block{kind: f[2], line: i + 1}, f[1]
		case heading.MatchString(line):
			out = appendPlayable(out, now)
			now = section{heading: heading.FindStringSubmatch(line)[1]}
		case comment.MatchString(line):
			now.blocks = append(now.blocks, block{kind: "comment", text: comment.FindStringSubmatch(line)[1], line: i + 1})
		}
	}
	return appendPlayable(out, now)
}

// appendPlayable leaves out sections that show what is not played: sessions at a terminal,
// and files that are not the reader's.
func appendPlayable(out []section, s section) []section {
	if !slices.ContainsFunc(s.blocks, func(b block) bool { return b.kind != "console" && b.kind != "" }) {
		return out
	}
	return append(out, s)
}

// What differs from one run of an example to the next.
var vary = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\bwebsite-[0-9a-f]{12}\b`), "COPY"},
	{regexp.MustCompile(`\b[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`), "REVISION"},
	{regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?s\b`), "AGE"},
	{regexp.MustCompile(`\b\d+m ago\b|\bin \d+m\b`), "AGE"},
	{regexp.MustCompile(`\bevidence \S+ of\b`), "evidence N of"},
	{regexp.MustCompile(`\b\d+ failed requests`), "N failed requests"},
	{regexp.MustCompile(`\bdifference of \S+ pp\b`), "difference of N pp"},
	{regexp.MustCompile(`\bover \d+ canary and \d+ stable requests`), "over N canary and N stable requests"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
	// kubectl writes as many dashes and spaces as the longest value needs.
	{regexp.MustCompile(`-{3,}`), "---"},
}

// normal is output without what differs from one run to the next.
func normal(output string) string {
	for _, v := range vary {
		output = v.what.ReplaceAllString(output, v.as)
	}
	return strings.TrimSpace(output)
}

func TestSectionsOfAPageAreFound(t *testing.T) {
	t.Parallel()
	const text = "# Page\n\nProse.\n\n## One\n\n<!-- 5m later -->\n```sh\nls | wc\n# no heading\n```\n\n- item\n\n  ```text\n  2\n  ```\n\n## Two\n\n### Three\n\n```yaml\na: b\n```\n"
	got := sectionsOf(text)
	if len(got) != 2 || got[0].heading != "One" || len(got[0].blocks) != 3 || got[1].heading != "Three" {
		t.Fatalf("%+v", got)
	}
	want := []block{{"comment", "5m later", 7}, {"sh", "ls | wc\n# no heading\n", 8}, {"text", "2\n", 15}}
	for i := range want {
		if got[0].blocks[i] != want[i] {
			t.Errorf("%+v, want %+v", got[0].blocks[i], want[i])
		}
	}
}

func TestOutputIsComparedWithoutWhatVaries(t *testing.T) {
	t.Parallel()
	shown := "NAME      AGE\nwebsite   12s   revision 5d4f8c7b9 until 10:02:00 UTC or later\n"
	if got, want := normal(shown), "NAME AGE\nwebsite AGE revision REVISION until TIME UTC or later"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if normal("Step 1/2: 10 %") == normal("Step 1/2: 20 %") {
		t.Error("a weight does not matter")
	}
}
