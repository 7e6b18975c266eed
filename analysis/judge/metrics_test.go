// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// comparing is plain with metrics of the user that weigh as much as failures.
func comparing(names ...string) judge.Config {
	c := plain()
	for _, name := range names {
		c.Comparisons = append(c.Comparisons, judge.Comparison{Name: name, Weight: 1, Tolerance: .01})
	}
	return c
}

// sampled is a window in which nothing failed, with samples.
func sampled(i int, samples ...analysis.Sample) analysis.Window {
	w := window(i, 50, variant(1000, 0), variant(1000, 0))
	w.Samples = samples
	return w
}

func sample(name string, canary, stable analysis.Variant) analysis.Sample {
	return analysis.Sample{Name: name, Canary: canary, Stable: stable}
}

// untilFail plays windows until the verdict is Fail.
func untilFail(c judge.Config, next func(i int) analysis.Window) judge.Result {
	var s judge.State
	var r judge.Result
	for i := 0; i < 60 && r.Verdict != judge.Fail; i++ {
		s, r = c.Next(s, next(i))
	}
	return r
}

func TestAUsersMetricThatIsWorseFailsTheCanaryAndIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name           string
		canary, stable analysis.Variant
		explain        string
	}{
		{
			"counts", variant(200, 40), variant(200, 4),
			"canary is worse than stable in orders: lately 20.0 % of its events were bad, and 2.0 % of stable's",
		},
		{
			"histogram", timed(200, 50, 100, 160, 200), timed(200, 100, 180, 198, 200),
			"canary is worse than stable in orders: lately 20.0 % of its events were beyond 1, and 1.0 % of stable's",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := untilFail(comparing("orders"), func(i int) analysis.Window { return sampled(i, sample("orders", tt.canary, tt.stable)) })
			if r.Verdict != judge.Fail || r.DecidingMetric != "orders" {
				t.Fatalf("verdict = %s, led by %s, want Fail, led by orders", r.Verdict, r.DecidingMetric)
			}
			explain, _, _ := strings.Cut(r.Explain(), ";")
			if diff := cmp.Diff(tt.explain, explain); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMetricThatIsNotWorseDilutesTheEvidenceByItsWeightOnly(t *testing.T) {
	bad := func(i int) analysis.Window {
		w := window(i, 50, variant(100, 12), variant(100, 0))
		w.Samples = []analysis.Sample{sample("orders", variant(500, 5), variant(500, 5))}
		return w
	}
	alone, _ := plain().Next(judge.State{}, bad(0))
	light, heavy := comparing("orders"), comparing("orders")
	light.Comparisons[0].Weight, heavy.Comparisons[0].Weight = .1, 9
	withLight, _ := light.Next(judge.State{}, bad(0))
	withHeavy, _ := heavy.Next(judge.State{}, bad(0))
	// In the first window a metric has its stake yet, which is 1.
	for name, c := range map[string]struct{ got, weight float64 }{"light": {withLight.Evidence(), .1}, "heavy": {withHeavy.Evidence(), 9}} {
		if want := (alone.Evidence() + c.weight) / (1 + c.weight); math.Abs(c.got/want-1) > 1e-6 {
			t.Errorf("%s: evidence = %v, want the weighted mean %v", name, c.got, want)
		}
	}
	if r := untilFail(heavy, bad); r.Verdict != judge.Fail || r.DecidingMetric != judge.MetricFailures {
		t.Errorf("verdict = %s, led by %s, want Fail by failures: nothing good excuses them", r.Verdict, r.DecidingMetric)
	}
}

func TestASampleIsCountedOnceAndOnlyForAMetricThatIsCompared(t *testing.T) {
	good := sample("orders", variant(200, 4), variant(200, 4))
	bad := sample("orders", variant(200, 60), variant(200, 4))
	before, _ := comparing("orders").Next(judge.State{}, sampled(0, good))
	without, _ := comparing("orders").Next(before, sampled(1))
	at := func(start time.Time) analysis.Sample {
		s := bad
		s.Start = start
		return s
	}
	for _, tt := range []struct {
		name   string
		config judge.Config
		sample analysis.Sample
		counts bool
	}{
		{"the next stretch of time", comparing("orders"), bad, true},
		{"a sample that says that it is the next", comparing("orders"), at(before.End()), true},
		{"a sample that begins within the one before", comparing("orders"), at(before.End().Add(-time.Second)), false},
		{"another metric", comparing("orders"), sample("carts", variant(200, 60), variant(200, 4)), false},
		{"no stable events", comparing("orders"), sample("orders", variant(200, 60), variant(0, 0)), false},
		{"a histogram where there were counts", comparing("orders"), sample("orders", timed(200, 0, 0, 200), timed(200, 0, 0, 200)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after, _ := tt.config.Next(before, sampled(1, tt.sample))
			if counted := math.Abs(after.Evidence()/without.Evidence()-1) > 1e-6; counted != tt.counts {
				t.Errorf("counted = %v (evidence %v, %v without the sample), want %v", counted, after.Evidence(), without.Evidence(), tt.counts)
			}
		})
	}
}

func TestASampleThatBeganUnderAnotherWeightIsLeftOut(t *testing.T) {
	c := comparing("orders")
	before, _ := c.Next(judge.State{}, sampled(0, sample("orders", variant(200, 4), variant(200, 4))))
	without, _ := c.Next(before.StartStep(window(2, 50, variant(0, 0), variant(0, 0)).Start), sampled(2))
	spanning, own := sampled(2, sample("orders", variant(200, 60), variant(200, 4))), sampled(2, sample("orders", variant(200, 60), variant(200, 4)))
	spanning.Samples[0].Start = spanning.Start.Add(-time.Second)
	after, _ := c.Next(before.StartStep(spanning.Start), spanning)
	// It counts apart from now on, which is less than the sum of both.
	if after.Evidence() > without.Evidence() {
		t.Errorf("evidence = %v, want no more than the %v without the sample", after.Evidence(), without.Evidence())
	}
	if after, _ = c.Next(before.StartStep(own.Start), own); after.Evidence() < 2*without.Evidence() {
		t.Errorf("evidence = %v for a sample of the step itself, want more than %v", after.Evidence(), without.Evidence())
	}
}

// A metric that is sampled over other stretches of time than the windows could
// be looked at in the middle of a sample: it counts alone or not at all.
func TestSamplesOfOtherStretchesOfTimeAreNotAddedToTheRest(t *testing.T) {
	play := func(apart bool) judge.State {
		var s judge.State
		c := comparing("orders")
		for i := range 6 {
			w := window(i, 50, variant(200, 6), variant(200, 1))
			if i%2 == 1 {
				m := sample("orders", variant(400, 14), variant(400, 4))
				if apart {
					m.Start = w.Start.Add(-5 * time.Second)
				}
				w.Samples = []analysis.Sample{m}
			}
			s, _ = c.Next(s, w)
		}
		return s
	}
	together, apart := play(false), play(true)
	if !(apart.Evidence() < together.Evidence()) {
		t.Errorf("evidence = %v apart and %v together, want less apart", apart.Evidence(), together.Evidence())
	}
	if apart.Evidence() < together.Evidence()/2 {
		t.Errorf("evidence = %v apart and %v together, want at least the half of two metrics", apart.Evidence(), together.Evidence())
	}
}

func TestComparisonsKeepTheirBetsWhenTheListIsEdited(t *testing.T) {
	bad := func(i int) analysis.Window {
		return sampled(i, sample("a", variant(200, 11), variant(200, 4)), sample("b", variant(200, 4), variant(200, 4)))
	}
	ab, ba := comparing("a", "b"), comparing("b", "a")
	var kept, swapped judge.State
	for i := range 3 {
		kept, _ = ab.Next(kept, bad(i))
		c := ab
		if i%2 == 1 {
			c = ba
		}
		swapped, _ = c.Next(swapped, bad(i))
	}
	if math.Abs(kept.Evidence()/swapped.Evidence()-1) > 1e-9 {
		t.Errorf("evidence = %v after swapping, want %v", swapped.Evidence(), kept.Evidence())
	}
	added, _ := comparing("a", "b", "c").Next(kept, bad(3))
	if !(added.Evidence() > 1) {
		t.Errorf("evidence = %v after adding a metric, want that of the others to be kept", added.Evidence())
	}
	removed, r := comparing("b").Next(kept, bad(3))
	if removed.Evidence() > 1 || r.Verdict != judge.Pass {
		t.Errorf("evidence = %v, %s after removing the bad metric, want a Pass", removed.Evidence(), r.Explain())
	}
}

func TestAPlainNumberIsHeldToItsLimits(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	queue := judge.ValueBetween("queue", math.Inf(-1), 100)
	queue.ConsecutiveFailureLimit, queue.MinSamples = 2, 2
	play := func(values ...*float64) (judge.State, judge.Result) {
		var s judge.State
		r := plain(queue).Assess(s, epoch)
		for i, v := range values {
			w := sampled(i)
			w.Values = []analysis.Value{{Name: "queue", Value: v}}
			s, r = plain(queue).Next(s, w)
		}
		return s, r
	}
	for _, tt := range []struct {
		name    string
		values  []*float64
		verdict judge.Verdict
		reason  judge.Reason
		explain string
	}{
		{"enough good numbers", []*float64{number(3), number(100)}, judge.Pass, judge.ReasonNotWorse, ""},
		{"too few", []*float64{number(3)}, judge.Inconclusive, judge.ReasonLimitUnmeasured, "the limit queue ≤ 100 has 1 of 2 samples for its next measurement"},
		{"the last one is too high", []*float64{number(3), number(4), number(101)}, judge.Inconclusive, judge.ReasonLimitAtRisk, "canary missed the limit queue ≤ 100 1 of 2 times in a row"},
		{"too high often enough in a row", []*float64{number(101), number(102)}, judge.Fail, judge.ReasonLimitMissed, "canary missed the limit queue ≤ 100 2 of 2 times in a row"},
		{"too high, good, too high", []*float64{number(101), number(4), number(101)}, judge.Inconclusive, judge.ReasonLimitAtRisk, ""},
		{"a missing number", []*float64{number(3), number(4), nil}, judge.Inconclusive, judge.ReasonLimitMissing, "the limit queue ≤ 100 has no number: the measurement gave none, or the newest is too old"},
		{"NaN", []*float64{number(3), number(4), number(math.NaN())}, judge.Inconclusive, judge.ReasonLimitMissing, ""},
		{"infinity", []*float64{number(3), number(4), number(math.Inf(-1))}, judge.Inconclusive, judge.ReasonLimitMissing, ""},
		{"a good one after a missing one", []*float64{number(3), nil, number(4)}, judge.Pass, judge.ReasonNotWorse, ""},
		{"a missing one breaks no row of misses", []*float64{number(101), nil, number(101)}, judge.Fail, judge.ReasonLimitMissed, ""},
		{"only missing ones", []*float64{nil, nil, nil, nil}, judge.Inconclusive, judge.ReasonLimitMissing, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, r := play(tt.values...)
			if r.Verdict != tt.verdict || r.Reason != tt.reason {
				t.Errorf("verdict = %s (%s), want %s (%s)", r.Verdict, r.Reason, tt.verdict, tt.reason)
			}
			if tt.explain != "" {
				if diff := cmp.Diff(tt.explain, r.Explain()); diff != "" {
					t.Errorf("explanation (-want +got):\n%s", diff)
				}
			}
		})
	}
	s, _ := play(number(3), number(4))
	for i := 2; i < 100; i++ { // other measurements go on
		var r judge.Result
		s, r = plain(queue).Next(s, sampled(i))
		if stale := s.End().Sub(epoch) > 10*time.Second+judge.DefaultStaleAfter; stale != (r.Reason == judge.ReasonLimitMissing) {
			t.Fatalf("after %v: %s, want a number that is older than five minutes to be missing", s.End().Sub(epoch), r.Reason)
		}
	}
	if r := plain(queue).Assess(s.StartStep(s.End()), s.End()); r.Reason != judge.ReasonMissingData {
		t.Errorf("in the next step: %s, want MissingData", r.Reason)
	}
}

func TestLimitsOnPlainNumbersAreNamed(t *testing.T) {
	for want, l := range map[string]judge.Limit{
		"load ≥ 0.5":      judge.ValueBetween("load", .5, math.Inf(1)),
		"load ≤ 2":        judge.ValueBetween("load", math.Inf(-1), 2),
		"0 ≤ load ≤ 0.25": judge.ValueBetween("load", 0, .25),
	} {
		if got := l.String(); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}
