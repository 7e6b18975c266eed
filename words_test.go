// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"os"
	"path"
	"strings"
	"testing"
	"unicode"
)

// replaced are words that a reader would have to learn first, each with the word of the
// field to write instead.
var replaced = []struct {
	use   string
	words []string
}{
	{"programmed; a weight that users get is live", []string{"in effect", "ineffect", "ineffectat", "stepineffect", "weightineffect"}},
	{"cut over", []string{"take over", "takes over", "taken over", "took over", "taking over"}},
	{"restore", []string{"give back", "gives back", "given back", "gave back", "giving back"}},
	{"traffic goes through the proxies", []string{"in the path of", "enter the path", "enters the path", "leave the path", "leaves the path"}},
	{"fix", []string{"mend", "mends", "mended", "mending"}},
	{"the actor: user, approver, cluster admin, operator, another controller", []string{"somebody", "nobody", "anybody", "whoever"}},
	{"the actor: user, approver, cluster admin", []string{"a person", "persons", "people"}},
	{"user action, apply, should roll back, supersede", []string{"deed", "deeds", "heed", "heeds", "heeded", "obey", "obeys", "obeyed", "condemned", "giveway"}},
	{"previous, or stale", []string{"former"}},
	{"ReplicaSet to adopt", []string{"usurper", "heir", "heirs", "depose", "deposed"}},
	{"drain, debounce, endpoint age", []string{"linger", "lingers", "patience", "withhold", "staffed", "neighbour", "neighbours"}},
	{"patched object", []string{"borrow", "borrows", "borrowed"}},
	{"mirrored requests", []string{"copies of requests"}},
	{"counter, error log, outlier detection", []string{"tally", "tallies", "emergencies", "trials"}},
	{"delegation", []string{"spec drive", "status drive", "canarydrive", "canarydrivestatus"}},
	{"holdout", []string{"held back", "holds back", "heldbackuntil", "heldbackfrom", "holdback"}},
	{"notifiedAt", []string{"toldat"}},
	{"analysisSkipped", []string{"evidencewaived"}},
	{"maxCorrelatedFailures", []string{"maxcluster"}},
	{"cut over; traffic goes through the proxies", []string{"inpath", "notinpath"}},
	{"a plain sentence: what identifies what, or where is a difference", []string{"tell apart", "tells apart", "told apart"}},
	{"its own, or the actor", []string{"one s own"}},
	{"roll back, or remove", []string{"taken out", "takes out"}},
	{"roll back", []string{"go back to stable", "goes back to stable", "went back to stable"}},
	{"ramp down", []string{"fade", "fades", "faded", "fading"}},
	{"debounce", []string{"calm", "calms"}},
	{"stale or fallback ReplicaSet", []string{"stray", "strays"}},
	{"handover", []string{"succession"}},
	{"interrupt", []string{"broken off"}},
	{"tailer, or what watches", []string{"follower", "followers"}},
	{"fixture, snapshot, observation", []string{"scene", "scenes"}},
	{"scenario", []string{"story", "stories"}},
	{"state", []string{"situation", "situations"}},
	{"cycle, recursion", []string{"in a circle"}},
}

// TestReplacedWordsStayOut looks at code, manifests and pages.
func TestReplacedWordsStayOut(t *testing.T) {
	for _, file := range sources(t, ".go", ".md", ".yaml", ".tpl") {
		if file == "words_test.go" || strings.HasPrefix(path.Base(file), "zz_") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The standard library's http.NoBody is no word.
		text := plain(strings.ReplaceAll(string(content), "http.NoBody", ""))
		for _, r := range replaced {
			for _, word := range r.words {
				if strings.Contains(text, " "+word+" ") {
					t.Errorf("%s has %q; write %s", file, word, r.use)
				}
			}
		}
	}
}

// plain has the words of a text in small letters with one space around each, across
// lines and comments.
func plain(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	return " " + strings.Join(words, " ") + " "
}

func TestWordsAreFoundAcrossLines(t *testing.T) {
	if got := plain("// The weight is in\n\t// Effect."); got != " the weight is in effect " {
		t.Errorf("plain = %q", got)
	}
}
