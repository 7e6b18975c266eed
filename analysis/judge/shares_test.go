// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// sharing is plain, with the shares tested.
func sharing() judge.Config {
	c := plain()
	c.Shares = true
	return c
}

func TestNothingPassesWhileTheSharesAreNotTheWeight(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  judge.Config
		windows []analysis.Window
		reason  judge.Reason
	}{
		{"the weight is kept", sharing(), []analysis.Window{window(0, 20, variant(100, 0), variant(400, 0))}, judge.ReasonNotWorse},
		{"half of the requests at a weight of 20", sharing(), []analysis.Window{window(0, 20, variant(250, 0), variant(250, 0))}, judge.ReasonShareMismatch},
		{"the same where shares are not tested", plain(), []analysis.Window{window(0, 20, variant(250, 0), variant(250, 0))}, judge.ReasonNotWorse},
		{"none of many, which is no lack of traffic", sharing(), []analysis.Window{window(0, 20, variant(0, 0), variant(400, 0))}, judge.ReasonShareMismatch},
		{"none of few", sharing(), []analysis.Window{window(0, 20, variant(0, 0), variant(10, 0))}, judge.ReasonNoTraffic},
		{"two weights in one step", sharing(), []analysis.Window{
			window(0, 20, variant(100, 0), variant(400, 0)), window(1, 50, variant(250, 0), variant(250, 0)),
		}, judge.ReasonNotWorse},
		{"a canary that fails is rolled back all the same", sharing(), []analysis.Window{
			window(0, 20, variant(250, 200), variant(250, 0)), window(1, 20, variant(250, 200), variant(250, 0)),
		}, judge.ReasonWorseThanStable},
		{"all traffic is for the canary", sharing(), []analysis.Window{window(0, 100, variant(250, 0), variant(250, 0))}, judge.ReasonNotCompared},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s judge.State
			var r judge.Result
			for _, w := range tt.windows {
				s, r = tt.config.Next(s, w)
			}
			if r.Reason != tt.reason || r.MayPromote {
				t.Errorf("%s, want %s: %s", r.Reason, tt.reason, r.Explain())
			}
			if mismatch := r.Reason == judge.ReasonShareMismatch; mismatch && (r.Verdict != judge.Inconclusive || !strings.Contains(r.Explain(), "its weight is 20 %: look for")) {
				t.Errorf("%s: %s", r.Verdict, r.Explain())
			}
		})
	}
}

func TestOnlyWindowsOfThePresentStepTellItsShares(t *testing.T) {
	c := sharing()
	s, r := c.Next(judge.State{}, window(0, 20, variant(0, 0), variant(500, 0)))
	if r.Reason != judge.ReasonShareMismatch {
		t.Fatalf("%s: %s", r.Reason, r.Explain())
	}
	s = stored(t, s).StartStep(epoch.Add(7 * time.Second))
	if s, r = c.Next(s, window(1, 20, variant(0, 0), variant(500, 0))); r.Reason != judge.ReasonMissingData {
		t.Errorf("a window that began before the weight was live: %s: %s", r.Reason, r.Explain())
	}
	if _, r = c.Next(s, window(2, 20, variant(60, 0), variant(240, 0))); r.Reason != judge.ReasonNotWorse {
		t.Errorf("%s: %s", r.Reason, r.Explain())
	}
}

func TestAMismatchEndsWhenTheWeightIsKept(t *testing.T) {
	c := sharing()
	s, r := c.Next(judge.State{}, window(0, 20, variant(0, 0), variant(500, 0)))
	for i := range 3 {
		if r.Reason != judge.ReasonShareMismatch {
			t.Fatalf("window %d: %s: %s", i, r.Reason, r.Explain())
		}
		s, r = c.Next(stored(t, s), window(1+i, 20, variant(40, 0), variant(160, 0)))
	}
	if r.Verdict != judge.Pass {
		t.Errorf("%s: %s", r.Reason, r.Explain())
	}
}
