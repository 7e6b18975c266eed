// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// untilPromoted plays windows of one step until the canary may be promoted.
func untilPromoted(c judge.Config, t *traffic, end time.Duration) (time.Duration, bool) {
	s := judge.State{}.StartStep(epoch)
	for t.at < end {
		var r judge.Result
		if s, r = c.Next(s, t.next()); r.MayPromote {
			return t.at, true
		} else if r.Verdict == judge.Fail {
			return t.at, false
		}
	}
	return end, false
}

func TestABadCanaryIsPromotedEarlyAtMostAsOftenAsPromised(t *testing.T) {
	const runs, length = 250, 10 * time.Minute
	// Nothing is rolled back, so that every canary has all the time to be promoted.
	c := judge.Defaults()
	c.MaxFalseRollback, c.Startup, c.MinEvidence = 1e-300, judge.Startup{}, 0
	worseBy := func(stable func(time.Duration) float64, by float64) func(time.Duration) float64 {
		return func(at time.Duration) float64 { return stable(at) + by }
	}
	for _, tt := range []struct {
		name   string
		rate   float64
		stable func(time.Duration) float64
		by     float64
	}{
		{"just bad, quiet", 100, always(.001), .005},
		{"just bad, busy", 1000, always(.01), .005},
		{"just bad on a high base rate", 200, always(.2), .005},
		{"just bad through an incident", 200, incident(.001), .005},
		{"a little worse than that", 200, always(.001), .007},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			promoted := 0
			for run := range runs {
				flow := newTraffic(uint64(run), tt.rate)
				flow.weight = func(time.Duration) int32 { return 50 }
				flow.stable, flow.canary = tt.stable, worseBy(tt.stable, tt.by)
				if _, ok := untilPromoted(c, flow, length); ok {
					promoted++
				}
			}
			t.Logf("%s: %d of %d promoted, at most %.2f %% with 95 %% confidence", tt.name, promoted, runs, 100*upperBound(promoted, runs))
			// The lower end: a rate above the promised one would be seen.
			if promoted > 6 {
				t.Errorf("%d of %d bad canaries promoted, want at most 1 %%", promoted, runs)
			}
		})
	}
}

func TestAGoodCanaryMayBePromotedEarly(t *testing.T) {
	for _, tt := range []struct {
		name         string
		rate, base   float64
		median, most time.Duration
	}{
		{"1,000 requests a second", 1000, .001, 45 * time.Second, 50 * time.Second},
		{"1,000 requests a second, 1 % failing", 1000, .01, 45 * time.Second, 75 * time.Second},
		{"100 requests a second", 100, .001, 70 * time.Second, 160 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const runs = 200
			var took []time.Duration
			for run := range runs {
				flow := newTraffic(uint64(run), tt.rate)
				flow.weight = func(time.Duration) int32 { return 50 }
				flow.stable, flow.canary = always(tt.base), always(tt.base)
				at, _ := untilPromoted(judge.Defaults(), flow, time.Hour)
				took = append(took, at)
			}
			slices.Sort(took)
			median, most := took[runs/2], took[runs*95/100]
			t.Logf("%s: median %v, 95 %% within %v", tt.name, median, most)
			if median > tt.median || most > tt.most {
				t.Errorf("promoted within %v (median) and %v (95 %%), want %v and %v", median, most, tt.median, tt.most)
			}
			if took[0] < 45*time.Second {
				t.Errorf("promoted after %v, want at least 30 s of evidence after 15 s of start-up", took[0])
			}
		})
	}
}

// Traffic at 5 % says nothing about how a canary does under ten times the load.
func TestEvidenceAtOneWeightDoesNotCertifyAnother(t *testing.T) {
	c := judge.Defaults()
	flow := newTraffic(1, 1000)
	flow.stable, flow.canary = always(.001), always(.001)
	s := judge.State{}.StartStep(epoch)
	var r judge.Result
	for flow.at < 5*time.Minute {
		s, r = c.Next(s, flow.next())
	}
	if !r.MayPromote || r.PromotionEvidence < 100*r.PromotionThreshold {
		t.Fatalf("after five good minutes: promotion evidence %v, %s; want far more than is needed", r.PromotionEvidence, r.Explain())
	}
	s = s.StartStep(epoch.Add(flow.at))
	if r := c.Assess(s, epoch.Add(flow.at)); r.PromotionEvidence != 1 || r.MayPromote {
		t.Errorf("at the beginning of the next step: promotion evidence %v, want 1", r.PromotionEvidence)
	}
	flow.weight = func(time.Duration) int32 { return 50 }
	flow.canary = func(time.Duration) float64 { return .011 } // it cannot bear the load
	for range 60 {
		if s, r = c.Next(s, flow.next()); r.MayPromote {
			t.Fatalf("promoted early %v into the step in which it fails: %s", flow.at, r.Explain())
		}
	}
}

func TestEveryMetricMustSpeakForAPromotion(t *testing.T) {
	c := plain()
	c.Comparisons = []judge.Comparison{{Name: "orders", Weight: 1, Tolerance: .01}}
	play := func(orders func(i int) *analysis.Sample) judge.Result {
		flow := newTraffic(3, 1000)
		flow.weight = func(time.Duration) int32 { return 50 }
		s := judge.State{}.StartStep(epoch)
		var r judge.Result
		for i := range 60 {
			w := flow.next()
			if sample := orders(i); sample != nil {
				w.Samples = []analysis.Sample{*sample}
			}
			s, r = c.Next(s, w)
		}
		return r
	}
	orders := func(canary, stable analysis.Variant) func(int) *analysis.Sample {
		return func(int) *analysis.Sample { return &analysis.Sample{Name: "orders", Canary: canary, Stable: stable} }
	}
	if r := play(orders(variant(500, 5), variant(500, 5))); !r.MayPromote {
		t.Errorf("all metrics are good: %s, promotion evidence %v; want a promotion", r.Explain(), r.PromotionEvidence)
	}
	for name, sample := range map[string]func(int) *analysis.Sample{
		"a metric has no sample":             func(int) *analysis.Sample { return nil },
		"a metric has no events":             orders(variant(0, 0), variant(0, 0)),
		"a metric has no events of a canary": orders(variant(0, 0), variant(500, 5)),
		"a metric has too few":               orders(variant(2, 0), variant(2, 0)),
		"a metric is just too bad":           orders(variant(500, 10), variant(500, 5)),
	} {
		if r := play(sample); r.MayPromote || r.PromotionEvidence >= r.PromotionThreshold {
			t.Errorf("%s: may be promoted with evidence %v", name, r.PromotionEvidence)
		}
	}
}

func TestNoCanaryIsPromotedEarlyWithout(t *testing.T) {
	good := func(c judge.Config, weight int32, windows int) judge.Result {
		s := judge.State{}.StartStep(epoch)
		var r judge.Result
		for i := range windows {
			s, r = c.Next(s, window(i, weight, variant(1e5, 10), variant(1e5, 10)))
		}
		return r
	}
	c := plain()
	if r := good(c, 50, 6); !r.MayPromote {
		t.Fatalf("after 30 s: %s, want a promotion", r.Explain())
	}
	off, warming := c, judge.Defaults()
	off.MaxBadPromotion = 0
	atOnce := off
	atOnce.MinEvidence = 0
	for name, r := range map[string]judge.Result{
		"the minimum time":            good(c, 50, 5),
		"being asked for":             good(off, 50, 60),
		"a threshold to reach":        good(atOnce, 50, 60),
		"stable traffic":              good(c, 100, 60),
		"the end of the start-up":     good(warming, 50, 3),
		"evidence after its start-up": good(warming, 50, 8),
	} {
		if r.MayPromote {
			t.Errorf("promoted early without %s: %s", name, r.Explain())
		}
	}
	if r := good(off, 50, 60); r.PromotionThreshold != 0 {
		t.Errorf("promotion threshold = %v, want 0: there is none", r.PromotionThreshold)
	}
}

func TestAWindowThatBeganBeforeTheStepDoesNotSpeakForAPromotion(t *testing.T) {
	c := plain()
	good := variant(1e5, 10)
	s, _ := c.Next(judge.State{}, window(0, 10, good, good))
	s = s.StartStep(window(1, 50, good, good).Start.Add(time.Second))
	s, r := c.Next(s, window(1, 50, good, good))
	if r.PromotionEvidence != 1 {
		t.Errorf("promotion evidence = %v after a window that was partly measured at another weight, want 1", r.PromotionEvidence)
	}
	if _, r = c.Next(s, window(2, 50, good, good)); r.PromotionEvidence <= 1 {
		t.Errorf("promotion evidence = %v after a good window of the step itself, want more than 1", r.PromotionEvidence)
	}
}

func TestASuspectedCanaryIsNotPromoted(t *testing.T) {
	c := plain()
	c.MinEvidence = 0
	c.Tolerance = .2 // so much that both kinds of evidence can be high
	s := judge.State{}
	var seen bool
	for i := range 100 {
		var r judge.Result
		s, r = c.Next(s, window(i, 50, variant(100, 15), variant(100, 4)))
		if r.Reason == judge.ReasonSuspected {
			seen = true
			if r.MayPromote {
				t.Errorf("may be promoted with %s", r.Explain())
			}
		}
	}
	if !seen {
		t.Error("never suspected: the test shows nothing")
	}
}

func TestAPromotionIsExplained(t *testing.T) {
	s := judge.State{}
	var r judge.Result
	for i := range 6 {
		s, r = plain().Next(s, window(i, 50, variant(1e5, 100), variant(1e5, 100)))
	}
	const want = "canary fails as often as stable over 600000 canary and 600000 stable requests; evidence 0.5 of 100 needed to roll back; a difference of 0.2 pp would show by now; that suffices to promote early"
	if diff := cmp.Diff(want, r.Explain()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}
