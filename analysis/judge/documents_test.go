// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"os"
	"strings"
	"testing"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

func TestTheSentencesOfTheDocumentationAreWhatTheJudgeSays(t *testing.T) {
	page, err := os.ReadFile("../../docs/analysis.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]struct {
		config         judge.Config
		canary, stable analysis.Variant
	}{
		"a canary that fails more":      {plain(), variant(160, 8), variant(1440, 2)},
		"a canary that is slower":       {plain(), timed(1000, 500, 800, 990, 1000), timed(1000, 500, 950, 990, 1000)},
		"a canary that is no worse":     {plain(), variant(500, 1), variant(4500, 9)},
		"a canary that gets too little": {sharing(), variant(9, 0), variant(441, 0)},
	} {
		var s judge.State
		var r judge.Result
		for i := 0; i < 10 && r.Verdict != judge.Fail; i++ {
			s, r = w.config.Next(s, window(i, 10, w.canary, w.stable))
		}
		if !strings.Contains(string(page), "\n"+r.Explain()+"\n") {
			t.Errorf("%s: docs/analysis.md does not say %q", name, r.Explain())
		}
	}
}
