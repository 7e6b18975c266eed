// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// wantOnPage compares what a simulation gave with the line of docs/analysis.md that begins in a way, if one does.
func wantOnPage(t *testing.T, begins, line string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/analysis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut("\n"+string(page), "\n"+begins)
	if said, _, _ := strings.Cut(rest, "\n"); found && begins+said != line {
		t.Errorf("docs/analysis.md says\n%s\nand it is\n%s", begins+said, line)
	}
}

// grouped has a comma for each three digits, as pages have.
func grouped(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

func TestTheSentencesOfTheDocumentationAreWhatTheJudgeSays(t *testing.T) {
	page, err := os.ReadFile("../../docs/analysis.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]struct {
		config         judge.Config
		canary, stable analysis.Variant
		refused        int64
	}{
		"a canary that fails more":      {plain(), variant(160, 8), variant(1440, 2), 0},
		"a canary that is slower":       {plain(), timed(1000, 500, 800, 990, 1000), timed(1000, 500, 950, 990, 1000), 0},
		"a canary that is no worse":     {plain(), variant(500, 1), variant(4500, 9), 0},
		"a canary that gets too little": {sharing(), variant(9, 0), variant(441, 0), 0},
		"proxies that refuse requests":  {plain(), variant(100, 0), variant(900, 0), 200},
	} {
		var s judge.State
		var r judge.Result
		for i := 0; i < 10 && r.Verdict != judge.Fail; i++ {
			next := window(i, 10, w.canary, w.stable)
			next.Proxies = analysis.Variant{Requests: w.canary.Requests + w.stable.Requests + w.refused, Failures: w.refused}
			s, r = w.config.Next(s, next)
		}
		if !strings.Contains(string(page), "\n"+r.Explain()+"\n") {
			t.Errorf("%s: docs/analysis.md does not say %q", name, r.Explain())
		}
	}
}
