// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// replaced are words that a reader would have to learn first, each with the word of the
// field to write instead.
var replaced = []struct {
	name, use string
	words     []string
}{
	{"in effect", "programmed; a weight that users get is live", []string{"in effect", "ineffect", "ineffectat", "stepineffect", "weightineffect"}},
	{"take over", "cut over", []string{"take over", "takes over", "taken over", "took over", "taking over"}},
	{"give back", "restore", []string{"give back", "gives back", "given back", "gave back", "giving back"}},
	{"the path", "traffic goes through the proxies", []string{"in the path of", "enter the path", "enters the path", "leave the path", "leaves the path"}},
	{"mend", "fix", []string{"mend", "mends", "mended", "mending"}},
	{"somebody", "the actor: user, approver, cluster admin, operator, another controller", []string{"somebody", "nobody", "anybody", "whoever"}},
	{"people", "the actor: user, approver, cluster admin", []string{"a person", "persons", "people"}},
	{"heed", "user action, apply, should roll back, supersede", []string{"deed", "deeds", "heed", "heeds", "heeded", "obey", "obeys", "obeyed", "condemned", "giveway"}},
	{"former", "previous, or stale", []string{"former"}},
	{"heir", "ReplicaSet to adopt", []string{"usurper", "heir", "heirs", "depose", "deposed"}},
	{"linger", "drain, debounce, endpoint age", []string{"linger", "lingers", "patience", "withhold", "staffed", "neighbour", "neighbours"}},
	{"borrow", "patched object", []string{"borrow", "borrows", "borrowed"}},
	{"copies", "mirrored requests", []string{"copies of requests"}},
	{"tally", "counter, error log, outlier detection", []string{"tally", "tallies", "emergencies", "trials"}},
	{"drive", "delegation", []string{"spec drive", "status drive", "canarydrive", "canarydrivestatus"}},
	{"held back", "holdout", []string{"held back", "holds back", "heldbackuntil", "heldbackfrom", "holdback"}},
	{"toldAt", "notifiedAt", []string{"toldat"}},
	{"evidenceWaived", "analysisSkipped", []string{"evidencewaived"}},
	{"maxCluster", "maxCorrelatedFailures", []string{"maxcluster"}},
	{"inPath", "cut over; traffic goes through the proxies", []string{"inpath", "notinpath"}},
	{"tell apart", "a plain sentence: what identifies what, or where is a difference", []string{"tell apart", "tells apart", "told apart"}},
	{"one's own", "its own, or the actor", []string{"one s own"}},
	{"take out", "roll back, or remove", []string{"taken out", "takes out"}},
	{"back to stable", "roll back", []string{"go back to stable", "goes back to stable", "went back to stable"}},
	{"fade", "ramp down", []string{"fade", "fades", "faded", "fading"}},
	{"calm", "debounce", []string{"calm", "calms"}},
	{"stray", "stale or fallback ReplicaSet", []string{"stray", "strays"}},
	{"succession", "handover", []string{"succession"}},
	{"break off", "interrupt", []string{"broken off"}},
	{"follower", "tailer, or what watches", []string{"follower", "followers"}},
	{"scene", "fixture, snapshot, observation", []string{"scene", "scenes"}},
	{"story", "scenario", []string{"story", "stories"}},
	{"situation", "state", []string{"situation", "situations"}},
	{"in a circle", "cycle, recursion", []string{"in a circle"}},
}

// TestReplacedWordsStayOut looks at code, manifests and pages. notYet has the folders that
// still use a word: an entry that is not needed any more has to go, so that it only shrinks.
func TestReplacedWordsStayOut(t *testing.T) {
	found := map[string]map[string]string{} // by folder and name, the first use
	for _, file := range sources(t, ".go", ".md", ".yaml", ".tpl") {
		if file == "words_test.go" || strings.HasPrefix(path.Base(file), "zz_") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The standard library's http.NoBody is no word.
		room, text := roomOf(file), plain(strings.ReplaceAll(string(content), "http.NoBody", ""))
		for _, r := range replaced {
			if i := slices.IndexFunc(r.words, func(word string) bool { return strings.Contains(text, " "+word+" ") }); i >= 0 {
				if found[room] == nil {
					found[room] = map[string]string{}
				}
				found[room][r.name] = file + " has " + r.words[i] + "; write " + r.use
			}
		}
	}
	for _, room := range slices.Sorted(maps.Keys(found)) {
		for name, use := range found[room] {
			if !slices.Contains(notYet[room], name) {
				t.Errorf("%s (%q of %q)", use, name, room)
			}
		}
	}
	for room, names := range notYet {
		for _, name := range names {
			if found[room][name] == "" {
				t.Errorf("%q does not use the word %q any more: remove it from notYet", room, name)
			}
		}
	}
}

// roomOf is the folder of a file; its tests are a room of their own.
func roomOf(file string) string {
	if strings.HasSuffix(file, "_test.go") {
		return path.Dir(file) + " tests"
	}
	return path.Dir(file)
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

// notYet are the words that a folder, or its tests, still has to replace.
var notYet = map[string][]string{
	"controllers/release tests":           {"calm", "inPath", "take out", "tell apart"},
	"controllers/trafficsplit tests":      {"break off", "story", "take out"},
	"controllers/trafficsplit/plan":       {"tell apart"},
	"controllers/trafficsplit/plan tests": {"take out"},
	// Names of golden logs, a message of Istio's router and a count of the exploration.
	"docs":                     {"tell apart"},
	"metricsapi/server":        {"take out"},
	"proxy/counts":             {"tell apart"},
	"traffic":                  {"tell apart"},
	"traffic/gatewayapi tests": {"scene", "tell apart"},
	"traffic/istio":            {"tell apart"},
}
