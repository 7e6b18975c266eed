// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"strings"
	"testing"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// refusing is a window of a good canary, in which the proxies refused so many requests.
func refusing(i int, refused int64) analysis.Window {
	w := window(i, 20, variant(100, 0), variant(400, 0))
	w.Proxies = analysis.Variant{Requests: 500 + refused, Failures: refused}
	return w
}

func TestWhatProxiesRefuseHoldsTheStepAndThenFails(t *testing.T) {
	c := sharing()
	c.Limits = []judge.Limit{judge.MinSuccessRate(.9)}
	s, r := c.Next(judge.State{}, refusing(0, 0))
	if r.Verdict != judge.Pass {
		t.Fatalf("nothing is refused: %s: %s", r.Reason, r.Explain())
	}
	for i := range 23 {
		s, r = c.Next(stored(t, s), refusing(1+i, 100))
		if r.Verdict != judge.Inconclusive || r.Reason != judge.ReasonRefusedByProxies || r.MayPromote || !strings.Contains(r.Explain(), "refuse 16.7 % of") {
			t.Fatalf("window %d: %s, %s: %s", i, r.Verdict, r.Reason, r.Explain())
		}
		if i == 10 { // the next step begins: what is refused is no matter of the step
			s = s.StartStep(s.End())
		}
	}
	s, r = c.Next(stored(t, s), refusing(24, 100))
	if r.Verdict != judge.Fail || r.Reason != judge.ReasonRefusedByProxies {
		t.Fatalf("%s, %s: %s", r.Verdict, r.Reason, r.Explain())
	}
	figures := r.Explain()
	for i := range 30 {
		s, r = c.Next(stored(t, s), refusing(25+i, 0))
	}
	if r.Verdict != judge.Fail || r.Explain() != figures {
		t.Errorf("a failure does not stay: %s: %s", r.Verdict, r.Explain())
	}
}

func TestTheToleranceIsWhatProxiesMayRefuse(t *testing.T) {
	c := plain()
	if _, r := c.Next(judge.State{}, refusing(0, 2)); r.Verdict != judge.Pass {
		t.Errorf("2 of 502: %s", r.Explain())
	}
	c.Tolerance /= 2
	if _, r := c.Next(judge.State{}, refusing(0, 2)); r.Reason != judge.ReasonRefusedByProxies {
		t.Errorf("2 of 502 with a smaller tolerance: %s", r.Explain())
	}
}

func TestACanaryThatIsWorseIsTheReasonAlsoWhileProxiesRefuse(t *testing.T) {
	c, s := plain(), judge.State{}
	var r judge.Result
	for i := 0; i < 24 && r.Verdict != judge.Fail; i++ {
		w := refusing(i, 400)
		w.Canary = variant(100, 40)
		s, r = c.Next(s, w)
	}
	if r.Reason != judge.ReasonWorseThanStable {
		t.Errorf("%s: %s", r.Reason, r.Explain())
	}
}

// Those of the release before are read by skew's test.
func TestAStateIsStoredWithAndWithoutRefusals(t *testing.T) {
	c := plain()
	c.Limits = []judge.Limit{judge.MinSuccessRate(.9), judge.ValueBetween("depth", 0, 1)}
	var none, some, missed judge.State
	none, _ = c.Next(none, window(0, 20, variant(100, 0), variant(400, 0)))
	some, _ = c.Next(some, refusing(0, 100))
	var r judge.Result
	for i := range 3 {
		w := refusing(i, 100)
		w.Canary = variant(100, 15)
		w.Stable = variant(400, 56)
		missed, r = c.Next(missed, w)
	}
	if r.Reason != judge.ReasonLimitMissed {
		t.Fatalf("%s: %s", r.Reason, r.Explain())
	}
	known := some
	for range 3 {
		known = c.Values(known, some.End(), []analysis.Value{{Name: "depth", Value: new(2.)}})
	}
	for name, s := range map[string]judge.State{"none": none, "some": some, "a limit that was missed": missed, "one of numbers": known} {
		if stored(t, s) != s {
			t.Errorf("%s: another state is read", name)
		}
		if r := c.Assess(stored(t, s), s.End()); r.Verdict == judge.Fail && r.Limit.Metric == "" {
			t.Errorf("%s: %s", name, r.Explain())
		}
	}
}
