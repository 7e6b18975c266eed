// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// plain is a configuration without a start-up phase.
func plain(limits ...judge.Limit) judge.Config {
	c := judge.Defaults()
	c.Startup = judge.Startup{}
	c.Limits = limits
	return c
}

// window is the i-th window of five seconds.
func window(i int, weight int32, canary, stable analysis.Variant) analysis.Window {
	start := epoch.Add(time.Duration(i) * 5 * time.Second)
	return analysis.Window{Start: start, End: start.Add(5 * time.Second), Weight: weight, Canary: canary, Stable: stable}
}

func variant(requests, failures int64) analysis.Variant {
	return analysis.Variant{Requests: requests, Failures: failures}
}

// timed is an variant with the number of requests within 0.1, 0.5 and 1 s.
func timed(requests int64, counts ...int64) analysis.Variant {
	return analysis.Variant{Requests: requests, Latency: &analysis.Histogram{LE: []float64{.1, .5, 1}, Counts: counts}}
}

func TestVerdict(t *testing.T) {
	success := judge.Limit{Metric: judge.SuccessRate, Min: .99, MinSamples: 100, ConsecutiveFailureLimit: 2}
	p90 := func(d time.Duration) judge.Limit {
		return judge.Limit{Metric: judge.Latency, Quantile: .9, Max: d, MinSamples: 100, ConsecutiveFailureLimit: 1}
	}
	for _, tt := range []struct {
		name    string
		config  judge.Config
		windows []analysis.Window
		verdict judge.Verdict
		reason  judge.Reason
		explain string
	}{
		{
			"passes with enough requests and no failures",
			plain(),
			[]analysis.Window{window(0, 50, variant(50, 0), variant(50, 0))},
			judge.Pass, judge.ReasonNotWorse,
			"canary fails as often as stable over 50 canary and 50 stable requests; evidence 0.9 of 100 needed to roll back; a difference of 28.6 pp would show by now",
		},
		{
			"passes a canary that is better",
			plain(),
			[]analysis.Window{window(0, 50, variant(100, 0), variant(100, 2))},
			judge.Pass, judge.ReasonNotWorse,
			"canary fails 2.0 pp less often than stable over 100 canary and 100 stable requests; evidence 0.5 of 100 needed to roll back; a difference of 17.7 pp would show by now",
		},
		{
			"fails on evidence",
			plain(),
			[]analysis.Window{window(0, 50, variant(100, 10), variant(100, 0)), window(1, 50, variant(100, 12), variant(100, 0))},
			judge.Fail, judge.ReasonWorseThanStable,
			"canary fails 11.0 pp more often than stable; evidence 4196 of 100 needed to roll back; 22 failed requests so far",
		},
		{
			"stays failed when good windows follow",
			plain(),
			[]analysis.Window{window(0, 50, variant(100, 10), variant(100, 0)), window(1, 50, variant(100, 12), variant(100, 0)), window(2, 50, variant(1e6, 0), variant(1e6, 0))},
			judge.Fail, judge.ReasonWorseThanStable,
			"canary fails 11.0 pp more often than stable; evidence 4196 of 100 needed to roll back; 22 failed requests so far",
		},
		{
			"waits while the canary gets no requests",
			plain(),
			[]analysis.Window{window(0, 50, variant(0, 0), variant(500, 0))},
			judge.Inconclusive, judge.ReasonNoTraffic,
			"the canary has answered no request in this step",
		},
		{
			"waits for canary requests",
			plain(),
			[]analysis.Window{window(0, 50, variant(49, 0), variant(500, 0))},
			judge.Inconclusive, judge.ReasonTooFewRequests,
			"waiting for requests: the canary has answered 49 of 50 in this step",
		},
		{
			"waits for stable requests",
			plain(),
			[]analysis.Window{window(0, 50, variant(500, 0), variant(49, 0))},
			judge.Inconclusive, judge.ReasonTooFewRequests,
			"waiting for requests: stable has answered 49 of 50 in this step",
		},
		{
			"waits for something to compare with",
			plain(),
			[]analysis.Window{window(0, 50, variant(500, 0), variant(0, 0))},
			judge.Inconclusive, judge.ReasonNoStableTraffic,
			"stable has answered no request in this step, so there is nothing to compare with",
		},
		{
			"compares with nothing when all traffic is on the canary",
			plain(),
			[]analysis.Window{window(0, 100, variant(500, 3), variant(0, 0))},
			judge.Pass, judge.ReasonNotCompared,
			"all traffic is on the canary, so there is nothing to compare with; 3 of its 500 requests failed",
		},
		{
			"adds up the windows of a step",
			plain(),
			[]analysis.Window{window(0, 50, variant(25, 0), variant(25, 0)), window(1, 50, variant(25, 0), variant(25, 0))},
			judge.Pass, judge.ReasonNotWorse,
			"canary fails as often as stable over 50 canary and 50 stable requests; evidence 0.9 of 100 needed to roll back; a difference of 28.6 pp would show by now",
		},
		{
			"does not pass in the start-up phase",
			judge.Defaults(),
			[]analysis.Window{window(0, 50, variant(500, 0), variant(500, 0)), window(1, 50, variant(500, 0), variant(500, 0))},
			judge.Inconclusive, judge.ReasonStartingUp,
			"the canary is still in its start-up phase",
		},
		{
			"passes once the start-up phase is over",
			judge.Defaults(),
			[]analysis.Window{window(0, 50, variant(500, 50), variant(500, 0)), window(3, 50, variant(500, 0), variant(500, 0))},
			judge.Pass, judge.ReasonNotWorse,
			"canary fails as often as stable over 500 canary and 500 stable requests; evidence 0.6 of 100 needed to roll back; a difference of 2.8 pp would show by now",
		},
		{
			"does not pass on requests of the start-up phase alone",
			judge.Defaults(),
			[]analysis.Window{window(0, 50, variant(500, 100), variant(500, 0)), window(1, 50, variant(500, 100), variant(500, 0)), window(2, 50, variant(500, 100), variant(500, 0))},
			judge.Inconclusive, judge.ReasonStartingUp,
			"the canary is still in its start-up phase",
		},
		{
			"counts the requests it needs from the end of the start-up phase",
			judge.Defaults(),
			[]analysis.Window{window(0, 50, variant(500, 0), variant(500, 0)), window(3, 50, variant(49, 0), variant(500, 0))},
			judge.Inconclusive, judge.ReasonTooFewRequests,
			"waiting for requests: the canary has answered 49 of 50 in this step",
		},
		{
			"counts stable's requests from the end of the start-up phase",
			judge.Defaults(),
			[]analysis.Window{window(0, 50, variant(500, 0), variant(500, 0)), window(3, 50, variant(500, 0), variant(49, 0))},
			judge.Inconclusive, judge.ReasonTooFewRequests,
			"waiting for requests: stable has answered 49 of 50 in this step",
		},
		{
			"needs requests after the start-up phase when nothing is compared",
			judge.Defaults(),
			[]analysis.Window{window(0, 100, variant(500, 0), variant(0, 0)), window(3, 100, variant(0, 0), variant(0, 0))},
			judge.Inconclusive, judge.ReasonTooFewRequests,
			"waiting for requests: the canary has answered 0 of 50 in this step",
		},
		{
			"begins the start-up phase with the canary's first request",
			judge.Defaults(),
			[]analysis.Window{window(0, 50, variant(0, 0), variant(500, 0)), window(9, 50, variant(500, 0), variant(500, 0))},
			judge.Inconclusive, judge.ReasonStartingUp,
			"the canary is still in its start-up phase",
		},
		{
			"does not pass while a limit lacks samples",
			plain(success),
			[]analysis.Window{window(0, 50, variant(99, 0), variant(500, 0))},
			judge.Inconclusive, judge.ReasonLimitUnmeasured,
			"the limit success rate ≥ 99 % has 99 of 100 samples for its next measurement",
		},
		{
			"passes a limit that is met exactly",
			plain(success),
			[]analysis.Window{window(0, 50, variant(100, 1), variant(100, 1))},
			judge.Pass, judge.ReasonNotWorse,
			"canary fails as often as stable over 100 canary and 100 stable requests; evidence 0.7 of 100 needed to roll back; a difference of 16.5 pp would show by now",
		},
		{
			"does not pass after a limit was missed once",
			plain(success),
			[]analysis.Window{window(0, 50, variant(100, 2), variant(100, 2))},
			judge.Inconclusive, judge.ReasonLimitAtRisk,
			"canary missed the limit success rate ≥ 99 % 1 of 2 times in a row",
		},
		{
			"fails when a limit is missed often enough in a row",
			plain(success),
			[]analysis.Window{window(0, 50, variant(100, 2), variant(100, 2)), window(1, 50, variant(100, 2), variant(100, 2))},
			judge.Fail, judge.ReasonLimitMissed,
			"canary missed the limit success rate ≥ 99 % 2 of 2 times in a row",
		},
		{
			"forgets a missed limit once it is met",
			plain(success),
			[]analysis.Window{window(0, 50, variant(100, 2), variant(100, 2)), window(1, 50, variant(100, 0), variant(100, 0)), window(2, 50, variant(100, 2), variant(100, 2))},
			judge.Inconclusive, judge.ReasonLimitAtRisk,
			"canary missed the limit success rate ≥ 99 % 1 of 2 times in a row",
		},
		{
			"gathers samples for a limit over windows",
			plain(success),
			[]analysis.Window{window(0, 50, variant(60, 1), variant(100, 1)), window(1, 50, variant(60, 1), variant(100, 1))},
			judge.Inconclusive, judge.ReasonLimitAtRisk,
			"canary missed the limit success rate ≥ 99 % 1 of 2 times in a row",
		},
		{
			"decides a latency limit at a bound",
			plain(p90(500 * time.Millisecond)),
			[]analysis.Window{window(0, 50, timed(100, 50, 89, 100), variant(100, 0))},
			judge.Fail, judge.ReasonLimitMissed,
			"canary missed the limit p90 ≤ 500ms 1 of 1 times in a row",
		},
		{
			"meets a latency limit at a bound exactly",
			plain(p90(500 * time.Millisecond)),
			[]analysis.Window{window(0, 50, timed(100, 50, 90, 100), variant(100, 0))},
			judge.Pass, judge.ReasonNotWorse,
			"canary fails as often as stable over 100 canary and 100 stable requests; evidence 0.9 of 100 needed to roll back; a difference of 14.6 pp would show by now",
		},
		{
			"meets a latency limit between bounds if enough are below the lower",
			plain(p90(600 * time.Millisecond)),
			[]analysis.Window{window(0, 50, timed(100, 50, 90, 100), variant(100, 0))},
			judge.Pass, judge.ReasonNotWorse,
			"canary fails as often as stable over 100 canary and 100 stable requests; evidence 0.9 of 100 needed to roll back; a difference of 14.6 pp would show by now",
		},
		{
			"misses a latency limit between bounds if too many are above the upper",
			plain(p90(600 * time.Millisecond)),
			[]analysis.Window{window(0, 50, timed(100, 50, 60, 89), variant(100, 0))},
			judge.Fail, judge.ReasonLimitMissed,
			"canary missed the limit p90 ≤ 600ms 1 of 1 times in a row",
		},
		{
			"does not guess between two bounds",
			plain(p90(600 * time.Millisecond)),
			[]analysis.Window{window(0, 50, timed(100, 50, 89, 100), variant(100, 0))},
			judge.Inconclusive, judge.ReasonLimitUndecided,
			"the limit p90 ≤ 600ms lies between two bounds of the latency histogram, which cannot tell; set it to a bound",
		},
		{
			"does not guess beyond the last bound",
			plain(p90(2 * time.Second)),
			[]analysis.Window{window(0, 50, timed(100, 50, 60, 60), variant(100, 0))},
			judge.Inconclusive, judge.ReasonLimitUndecided,
			"the limit p90 ≤ 2s lies between two bounds of the latency histogram, which cannot tell; set it to a bound",
		},
		{
			"does not take a missing latency for a good one",
			plain(p90(500 * time.Millisecond)),
			[]analysis.Window{window(0, 50, variant(1000, 0), variant(1000, 0))},
			judge.Inconclusive, judge.ReasonLimitUnmeasured,
			"the limit p90 ≤ 500ms has 0 of 100 samples for its next measurement",
		},
		{
			"counts only requests that were timed",
			plain(p90(500 * time.Millisecond)),
			[]analysis.Window{window(0, 50, timed(1000, 50, 99, 99, 99), variant(1000, 0))},
			judge.Inconclusive, judge.ReasonLimitUnmeasured,
			"the limit p90 ≤ 500ms has 99 of 100 samples for its next measurement",
		},
		{
			"decides nothing without windows",
			plain(), nil,
			judge.Inconclusive, judge.ReasonMissingData,
			"no traffic has been measured in this step yet",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s judge.State
			r := tt.config.Assess(s, epoch)
			for _, w := range tt.windows {
				s, r = tt.config.Next(s, w)
			}
			if r.Verdict != tt.verdict || r.Reason != tt.reason {
				t.Errorf("verdict = %s (%s), want %s (%s)", r.Verdict, r.Reason, tt.verdict, tt.reason)
			}
			if diff := cmp.Diff(tt.explain, r.Explain()); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnusableWindowsChangeNothingAndNeverPass(t *testing.T) {
	good := window(1, 50, variant(100, 0), variant(100, 0))
	with := func(change func(*analysis.Window)) analysis.Window {
		w := window(2, 50, variant(100, 0), variant(100, 0))
		change(&w)
		return w
	}
	for _, tt := range []struct {
		name   string
		window analysis.Window
		reason judge.Reason
	}{
		{"more failures than requests", with(func(w *analysis.Window) { w.Canary.Failures = 101 }), judge.ReasonInvalidData},
		{"negative requests", with(func(w *analysis.Window) { w.Stable.Requests = -1 }), judge.ReasonInvalidData},
		{"negative failures", with(func(w *analysis.Window) { w.Stable.Failures = -1 }), judge.ReasonInvalidData},
		{"a weight above 100", with(func(w *analysis.Window) { w.Weight = 101 }), judge.ReasonInvalidData},
		{"a negative weight", with(func(w *analysis.Window) { w.Weight = -1 }), judge.ReasonInvalidData},
		{"no start", with(func(w *analysis.Window) { w.Start = time.Time{} }), judge.ReasonInvalidData},
		{"no length", with(func(w *analysis.Window) { w.End = w.Start }), judge.ReasonInvalidData},
		{"a NaN bound", with(func(w *analysis.Window) {
			w.Canary.Latency = &analysis.Histogram{LE: []float64{math.NaN()}, Counts: []int64{1}}
		}), judge.ReasonInvalidData},
		{"a histogram that shrinks", with(func(w *analysis.Window) {
			w.Canary.Latency = &analysis.Histogram{LE: []float64{1, 2}, Counts: []int64{5, 4}}
		}), judge.ReasonInvalidData},
		{"more answers in time than requests", with(func(w *analysis.Window) {
			w.Canary.Latency = &analysis.Histogram{LE: []float64{1}, Counts: []int64{101}}
		}), judge.ReasonInvalidData},
		{"the same window again", good, judge.ReasonOutOfOrder},
		{"an earlier window", window(0, 50, variant(100, 0), variant(100, 0)), judge.ReasonOutOfOrder},
		{"an overlapping window", with(func(w *analysis.Window) { w.Start = w.Start.Add(-1) }), judge.ReasonOutOfOrder},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, _ := plain().Next(judge.State{}, good)
			after, r := plain().Next(before, tt.window)
			if r.Verdict != judge.Inconclusive || r.Reason != tt.reason {
				t.Errorf("verdict = %s (%s), want Inconclusive (%s)", r.Verdict, r.Reason, tt.reason)
			}
			if after != before {
				t.Error("the state changed")
			}
		})
	}
}

func TestAnUnusableWindowDoesNotUndoAFailure(t *testing.T) {
	s, _ := plain().Next(judge.State{}, window(0, 50, variant(100, 50), variant(100, 0)))
	s, _ = plain().Next(s, window(1, 50, variant(100, 50), variant(100, 0)))
	if _, r := plain().Next(s, window(0, 50, variant(100, 0), variant(100, 0))); r.Verdict != judge.Fail {
		t.Errorf("verdict after a late window = %s, want Fail", r.Verdict)
	}
	if r := plain().Assess(s.StartStep(epoch.Add(time.Hour)), epoch.Add(time.Hour)); r.Verdict != judge.Fail {
		t.Errorf("verdict in a later step = %s, want Fail", r.Verdict)
	}
	after, r := plain().Next(s, window(2, 50, variant(100, 0), variant(100, 0)))
	if r.Verdict != judge.Fail || r.Evidence != s.Evidence() || r.CanaryFailures != 100 {
		t.Errorf("after a good window: %s with evidence %v and %d failures, want what failed it", r.Verdict, r.Evidence, r.CanaryFailures)
	}
	if want := window(2, 50, variant(0, 0), variant(0, 0)).End; !after.End().Equal(want) {
		t.Errorf("end = %v, want %v: the window was seen", after.End(), want)
	}
}

func TestOnlyWindowsOfThePresentStepCountTowardsAPass(t *testing.T) {
	c := plain(judge.MinSuccessRate(.9))
	s, r := c.Next(judge.State{}, window(0, 10, variant(1000, 0), variant(1000, 0)))
	if r.Verdict != judge.Pass {
		t.Fatalf("verdict before the step = %s (%s), want Pass", r.Verdict, r.Reason)
	}
	begun := window(1, 20, variant(0, 0), variant(0, 0)).Start.Add(time.Second)
	s = s.StartStep(begun)
	if r := c.Assess(s, begun); r.Reason != judge.ReasonMissingData {
		t.Errorf("at the beginning of the step: %s, want MissingData", r.Reason)
	}
	evidence := s.Evidence()
	s, r = c.Next(s, window(1, 20, variant(1000, 0), variant(1000, 0)))
	if r.Reason != judge.ReasonMissingData {
		t.Errorf("after a window that began before the step: %s, want MissingData", r.Reason)
	}
	if s.Evidence() == evidence {
		t.Error("a window that began before the step added no evidence")
	}
	s, r = c.Next(s, window(2, 20, variant(60, 0), variant(1000, 0)))
	if r.Reason != judge.ReasonLimitUnmeasured || r.LimitSamples != 60 || r.CanaryRequests != 60 {
		t.Errorf("after 60 requests: %s with %d samples of %d requests, want LimitUnmeasured with 60 of 60", r.Reason, r.LimitSamples, r.CanaryRequests)
	}
	if _, r = c.Next(s, window(3, 20, variant(60, 0), variant(1000, 0))); r.Verdict != judge.Pass {
		t.Errorf("after 120 requests: %s (%s), want Pass", r.Verdict, r.Reason)
	}
}

func TestAPassDoesNotOutliveItsData(t *testing.T) {
	s, r := plain().Next(judge.State{}, window(0, 50, variant(100, 0), variant(100, 0)))
	if r.Verdict != judge.Pass {
		t.Fatalf("verdict = %s, want Pass", r.Verdict)
	}
	for _, tt := range []struct {
		name   string
		now    time.Time
		reason judge.Reason
	}{
		{"while it is fresh", s.End().Add(20 * time.Second), judge.ReasonNotWorse},
		{"once it is stale", s.End().Add(20*time.Second + 1), judge.ReasonStaleData},
		{"after the clock was set back", s.End().Add(-time.Minute), judge.ReasonStaleData},
	} {
		if r := plain().Assess(s, tt.now); r.Reason != tt.reason {
			t.Errorf("%s: %s (%s), want %s", tt.name, r.Verdict, r.Reason, tt.reason)
		}
	}
}

func TestLimitsKeepTheirCountsWhenTheListIsEdited(t *testing.T) {
	a, b := judge.MinSuccessRate(.99), judge.MinSuccessRate(.5)
	s, _ := plain(a, b).Next(judge.State{}, window(0, 50, variant(100, 20), variant(100, 20)))
	s, r := plain(b, a).Next(s, window(1, 50, variant(100, 20), variant(100, 20)))
	if r.Limit != a || r.LimitMissed != 2 {
		t.Errorf("after swapping: limit %v missed %d times, want %v missed twice", r.Limit, r.LimitMissed, a)
	}
	if _, r := plain(b).Next(s, window(2, 50, variant(100, 20), variant(100, 20))); r.Verdict != judge.Pass {
		t.Errorf("after removing the missed limit: %s (%s), want Pass", r.Verdict, r.Reason)
	}
}

func TestASuspectedCanaryGetsNoMoreTrafficUntilTheEvidenceIsClear(t *testing.T) {
	c := judge.Defaults()
	c.Startup.For = 0
	at := time.Unix(1e9, 0)
	s := judge.State{}.StartStep(at)
	var seen []judge.Reason
	for range 40 {
		w := analysis.Window{
			Start: at, End: at.Add(5 * time.Second), Weight: 10,
			Canary: analysis.Variant{Requests: 100, Failures: 2}, Stable: analysis.Variant{Requests: 900, Failures: 2},
		}
		at = w.End
		var r judge.Result
		s, r = c.Next(s, w)
		if len(seen) == 0 || seen[len(seen)-1] != r.Reason {
			seen = append(seen, r.Reason)
		}
		if suspected := r.Evidence >= 10 && r.Evidence < 100; suspected != (r.Reason == judge.ReasonSuspected) || suspected && r.Verdict != judge.Inconclusive {
			t.Fatalf("evidence %.1f: %s %s", r.Evidence, r.Verdict, r.Reason)
		}
		if r.Verdict == judge.Fail {
			break
		}
	}
	if diff := cmp.Diff([]judge.Reason{judge.ReasonNotWorse, judge.ReasonSuspected, judge.ReasonWorseThanStable}, seen); diff != "" {
		t.Errorf("the way of a bad canary (-want +got):\n%s", diff)
	}
}
