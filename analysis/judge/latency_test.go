// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// bounds are those that Serin's proxies count by, in seconds.
var bounds = []float64{.001, .002, .003, .005, .0075, .01, .015, .025, .05, .075, .1, .15, .25, .5, .75, 1, 2.5, 5, 10, 30, 60}

// lasting draws how long n requests take.
func lasting(n int64, draw func() float64) *analysis.Histogram {
	h := &analysis.Histogram{LE: bounds, Counts: make([]int64, len(bounds)+1)}
	for range n {
		i, _ := slices.BinarySearch(bounds, draw())
		h.Counts[i]++
	}
	for i := 1; i < len(h.Counts); i++ {
		h.Counts[i] += h.Counts[i-1]
	}
	return h
}

// around draws seconds from a log-normal distribution.
func (t *traffic) around(median float64) func() float64 {
	return func() float64 { return median * math.Exp(.7*t.rng.NormFloat64()) }
}

// timedWindow is the next window, with latencies.
func (t *traffic) timedWindow(canary, stable func() float64) analysis.Window {
	w := t.next()
	w.Canary.Latency, w.Stable.Latency = lasting(w.Canary.Requests, canary), lasting(w.Stable.Requests, stable)
	return w
}

func TestASlowCanaryIsFoundAndAGoodOneIsNot(t *testing.T) {
	const median, fastMedian = .04, .0005
	for _, tt := range []struct {
		name   string
		rate   float64
		canary func(*traffic) func() float64
		stable func(*traffic, time.Duration) func() float64
		within time.Duration // for nine in ten; 0: none is rolled back
	}{
		{"equal", 100, func(t *traffic) func() float64 { return t.around(median) }, nil, 0},
		{"equal, busy", 1000, func(t *traffic) func() float64 { return t.around(median) }, nil, 0},
		{"2 % slower", 1000, func(t *traffic) func() float64 { return t.around(1.02 * median) }, nil, 0},
		{"twice as slow", 100, func(t *traffic) func() float64 { return t.around(2 * median) }, nil, 75 * time.Second},
		{"twice as slow, busy", 1000, func(t *traffic) func() float64 { return t.around(2 * median) }, nil, 30 * time.Second},
		{"half as slow again, busy", 1000, func(t *traffic) func() float64 { return t.around(1.5 * median) }, nil, 45 * time.Second},
		{"2 % of the requests a second slower", 1000, func(t *traffic) func() float64 {
			fast := t.around(median)
			return func() float64 {
				if t.rng.Float64() < .02 {
					return fast() + 1
				}
				return fast()
			}
		}, nil, 60 * time.Second},
		{"a fast one of which 5 % wait for 2 ms", 200, func(t *traffic) func() float64 {
			return func() float64 {
				if t.rng.Float64() < .05 {
					return fastMedian + .002
				}
				return t.around(fastMedian)()
			}
		}, func(t *traffic, _ time.Duration) func() float64 { return t.around(fastMedian) }, 0},
		{"a fast one that takes ten times as long", 200, func(t *traffic) func() float64 { return t.around(10 * fastMedian) }, func(t *traffic, _ time.Duration) func() float64 { return t.around(fastMedian) }, 30 * time.Second},
		{"both twice as slow for some minutes", 500, func(t *traffic) func() float64 { return shared(t, median) }, func(t *traffic, _ time.Duration) func() float64 { return shared(t, median) }, 0},
		{"three times as slow while cold", 1000, func(t *traffic) func() float64 {
			if t.at <= 15*time.Second {
				return t.around(3 * median)
			}
			return t.around(median)
		}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const runs = 30
			var took []time.Duration
			for run := range runs {
				flow := newTraffic(uint64(run), tt.rate)
				flow.stable, flow.canary = always(.001), always(.001)
				s := judge.State{}
				var r judge.Result
				for flow.at < 3*time.Minute && r.Verdict != judge.Fail {
					stable := flow.around(median)
					if tt.stable != nil {
						stable = tt.stable(flow, flow.at)
					}
					s, r = judge.Defaults().Next(s, flow.timedWindow(tt.canary(flow), stable))
				}
				if r.Verdict == judge.Fail {
					took = append(took, flow.at)
					if tt.within > 0 && r.DecidingMetric != judge.MetricLatency {
						t.Errorf("deciding metric = %s, want the latency", r.DecidingMetric)
					}
				}
			}
			slices.Sort(took)
			t.Logf("%s: %d of %d rolled back, %v", tt.name, len(took), runs, took[:min(len(took), runs*9/10)])
			switch {
			case tt.within == 0 && len(took) > 0:
				t.Errorf("%d of %d good canaries rolled back", len(took), runs)
			case tt.within > 0 && (len(took) < runs*9/10 || took[runs*9/10-1] > tt.within):
				t.Errorf("%d of %d found, after %v; want nine in ten within %v", len(took), runs, took, tt.within)
			}
		})
	}
}

func shared(t *traffic, median float64) func() float64 {
	if t.at > time.Minute && t.at < 2*time.Minute {
		median *= 2
	}
	return t.around(median)
}

// stalling draws a window of pods that get so many requests a second each. Few are slow, but for those of the moments in
// which a pod waits for a processor.
func (t *traffic) stalling(pods int, perSecond float64, each, lasts time.Duration) analysis.Variant {
	const usual, moments = .0005, 100 // of a window
	n := int64(perSecond * t.length.Seconds())
	var slow int64
	for range pods {
		stalls := t.binomial(moments, float64(t.length)/float64(each)/moments)
		slow += t.binomial(n, min(usual+float64(stalls)*lasts.Seconds()/t.length.Seconds(), 1))
	}
	requests := n * int64(pods)
	v := variant(requests, 0)
	v.Latency = &analysis.Histogram{LE: []float64{.005, .01, .02}, Counts: []int64{requests - slow, requests - slow, requests, requests}}
	return v
}

func TestPodsThatStallNowAndThenSeldomRollBackAGoodCanary(t *testing.T) {
	const releases, before, windows = 500, 4, 10
	for _, each := range []time.Duration{10 * time.Second, 30 * time.Second, 100 * time.Second, 300 * time.Second} {
		for _, lasts := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			rolledBack := 0
			for release := range releases {
				flow := newTraffic(uint64(release), 0)
				var s judge.State
				var r judge.Result
				for i := 0; i < before+windows && r.Verdict != judge.Fail; i++ {
					canary, perPod := variant(0, 0), 50.
					if i >= before {
						canary, perPod = flow.stalling(1, 20, each, lasts), 45
					}
					s, r = judge.Defaults().Next(s, window(i, 10, canary, flow.stalling(4, perPod, each, lasts)))
				}
				if r.Verdict == judge.Fail {
					rolledBack++
				}
			}
			t.Logf("a pod stalls each %v for %v: %d of %d rolled back", each, lasts, rolledBack, releases)
			if rolledBack > releases/500 {
				t.Errorf("a pod stalls each %v for %v: %d of %d good canaries rolled back", each, lasts, rolledBack, releases)
			}
		}
	}
}

func TestASlowStartDoesNotFailACanaryAndLaterSlownessDoes(t *testing.T) {
	fast, slow := timed(1000, 1000, 1000, 1000), timed(1000, 0, 0, 1000)
	var s judge.State
	var r judge.Result
	for i := range 12 {
		canary := slow
		if i < 6 {
			canary = variant(0, 0) // so much of stable is known that latency is bet on from the canary's first request on
		}
		s, r = judge.Defaults().Next(s, window(i, 50, canary, fast))
		if startsUp := i < 9; startsUp && r.Evidence > 1 {
			t.Errorf("evidence = %v in window %d, before the end of the start-up phase; want at most 1", r.Evidence, i)
		}
	}
	if r.Verdict != judge.Fail || r.DecidingMetric != judge.MetricLatency {
		t.Errorf("after the start-up phase: %s (%s), want a rollback by latency", r.Verdict, r.Explain())
	}
}

func TestASlowCanaryIsExplained(t *testing.T) {
	s := judge.State{}
	var r judge.Result
	for i := 0; r.Verdict != judge.Fail && i < 10; i++ {
		s, r = plain().Next(s, window(i, 50, timed(1000, 500, 800, 990, 1000), timed(1000, 500, 950, 990, 1000)))
	}
	const want = "canary is slower than stable: lately 20.0 % of its requests took longer than 500ms, and 5.0 % of stable's; evidence 534 of 100 needed to roll back; 0 failed requests so far"
	if diff := cmp.Diff(want, r.Explain()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	if r.DecidingBound != .5 {
		t.Errorf("bound = %v s, want 0.5", r.DecidingBound)
	}
}

func TestLatencyIsComparedOnlyWhereItIsMeasured(t *testing.T) {
	slow, fast := timed(1000, 0, 0, 0, 1000), timed(1000, 1000, 1000, 1000, 1000)
	other := variant(1000, 0)
	other.Latency = &analysis.Histogram{LE: []float64{.3, 3}, Counts: []int64{1000, 1000}}
	off := plain()
	off.LatencyWeight = 0
	for _, tt := range []struct {
		name           string
		config         judge.Config
		canary, stable analysis.Variant
		verdict        judge.Verdict
	}{
		{"measured", plain(), slow, fast, judge.Fail},
		{"not asked for", off, slow, fast, judge.Pass},
		{"not measured in stable", plain(), slow, variant(1000, 0), judge.Pass},
		{"not measured in the canary", plain(), variant(1000, 0), fast, judge.Pass},
		{"counted by other bounds", plain(), other, fast, judge.Pass},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, r := tt.config.Next(judge.State{}, window(0, 50, variant(0, 0), fast))
			for i := 1; i < 10; i++ {
				s, r = tt.config.Next(s, window(i, 50, tt.canary, tt.stable))
			}
			if r.Verdict != tt.verdict {
				t.Errorf("verdict = %s (%s), want %s", r.Verdict, r.Explain(), tt.verdict)
			}
			if r.MayPromote && tt.config.LatencyWeight > 0 {
				t.Error("promoted early, though latency was to be compared and could not be")
			}
		})
	}
}

// The canary is slow between the bounds .5 and 1 only. That stable's p90 is at .5
// cannot be seen in its first hundred requests, which all are fast.
func TestTheEdgesAreSettledFromManyRequestsOfStable(t *testing.T) {
	lucky, usual, slow := timed(100, 100, 100, 100, 100), timed(100, 50, 90, 100, 100), timed(100, 50, 50, 100, 100)
	for _, tt := range []struct {
		name    string
		history int // windows in which the canary gets nothing
		stable  analysis.Variant
		found   bool
	}{
		{"thousands of requests before the canary's first", 60, usual, true},
		{"hundreds of requests before the canary's first", 10, usual, true},
		{"no requests before the canary's first", 0, usual, true},
		{"stable as fast as ever", 60, lucky, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s judge.State
			var r judge.Result
			for i := range tt.history + 60 {
				canary, stable := slow, tt.stable
				if i < tt.history {
					canary = variant(0, 0)
				}
				if i == 0 {
					stable = lucky
				}
				if !tt.found {
					canary = lucky
				}
				s, r = judge.Defaults().Next(s, window(i, 50, canary, stable))
			}
			if found := r.Verdict == judge.Fail; found != tt.found {
				t.Fatalf("verdict = %s (%s), want a rollback: %t", r.Verdict, r.Explain(), tt.found)
			}
			if tt.found && (r.DecidingMetric != judge.MetricLatency || r.DecidingBound != .5) {
				t.Errorf("found by %s beyond %v, want the latency beyond 0.5", r.DecidingMetric, r.DecidingBound)
			}
		})
	}
}

func TestAQuietStableSettlesTheEdgesOnceAHundredRequestsAreKnown(t *testing.T) {
	usual, slow := timed(10, 5, 9, 10, 10), timed(10, 0, 0, 10, 10)
	var s judge.State
	var r judge.Result
	for i := 0; i < 100 && r.Verdict != judge.Fail; i++ {
		if s, r = judge.Defaults().Next(s, window(i, 50, slow, usual)); r.Evidence > 1 && i < 10 {
			t.Fatalf("evidence of %v after %d requests of stable", r.Evidence, 10*(i+1))
		}
	}
	if r.Verdict != judge.Fail || r.DecidingMetric != judge.MetricLatency {
		t.Errorf("verdict = %s (%s), want a rollback by latency", r.Verdict, r.Explain())
	}
}

func TestTheLatencyIsNotStakedOnWhereProxiesDoNotMeasureIt(t *testing.T) {
	with, _ := plain().Next(judge.State{}, window(0, 50, variant(100, 3), variant(100, 0)))
	c := plain()
	c.LatencyWeight = 0
	without, _ := c.Next(judge.State{}, window(0, 50, variant(100, 3), variant(100, 0)))
	if with.Evidence() != without.Evidence() {
		t.Errorf("evidence = %v, want the %v of a configuration without latency", with.Evidence(), without.Evidence())
	}
}
