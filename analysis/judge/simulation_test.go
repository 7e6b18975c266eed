// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// edge is the highest failure rate of a canary that counts as no worse.
func edge(stable float64) float64 { return 1.1*stable + .2*judge.Defaults().Tolerance }

func TestACanaryThatIsNoWorseIsRolledBackAtMostAsOftenAsPromised(t *testing.T) {
	const runs, length = 400, 10 * time.Minute
	noStartup := judge.Defaults()
	noStartup.Startup = judge.Startup{}
	onEdge := func(stable func(time.Duration) float64) func(time.Duration) float64 {
		return func(at time.Duration) float64 { return edge(stable(at)) }
	}
	diurnal := func(at time.Duration) float64 { return .02 * (1 + math.Sin(at.Minutes())) }
	for _, tt := range []struct {
		name           string
		config         judge.Config
		rate           float64
		stable, canary func(time.Duration) float64
	}{
		{"equal, quiet", judge.Defaults(), 10, always(.001), always(.001)},
		{"equal, busy", judge.Defaults(), 1000, always(.01), always(.01)},
		{"on the edge, quiet", noStartup, 10, always(.01), always(edge(.01))},
		{"on the edge, busy", noStartup, 1000, always(.001), always(edge(.001))},
		{"on the edge with another base rate than usual", noStartup, 100, always(.2), always(edge(.2))},
		{"both suffer the same incident", judge.Defaults(), 100, incident(.001), incident(.001)},
		{"on the edge, both drift", noStartup, 100, diurnal, onEdge(diurnal)},
		{"cold for as long as the start-up phase allows", judge.Defaults(), 100, always(.001), func(at time.Duration) float64 {
			if at < 15*time.Second {
				return .2
			}
			return .001
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rolledBack := 0
			for run := range runs {
				flow := newTraffic(uint64(run), tt.rate)
				flow.stable, flow.canary, flow.weight = tt.stable, tt.canary, planned
				if _, failed := untilFailed(tt.config, flow, length); failed {
					rolledBack++
				}
			}
			t.Logf("%s: %d of %d rolled back, at most %.2f %% with 95 %% confidence", tt.name, rolledBack, runs, 100*upperBound(rolledBack, runs))
			if upperBound(rolledBack, runs) > tt.config.MaxFalseRollback {
				t.Errorf("%d of %d good canaries rolled back: the promised %v is outside the 95 %% bound", rolledBack, runs, tt.config.MaxFalseRollback)
			}
		})
	}
}

// upperBound is the one-sided 95 % bound of Clopper and Pearson: the rate at
// which k or fewer of n would be seen once in twenty times.
func upperBound(k, n int) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		p := (lo + hi) / 2
		var sum float64
		for i := range k + 1 {
			lg, _ := math.Lgamma(float64(n + 1))
			li, _ := math.Lgamma(float64(i + 1))
			lr, _ := math.Lgamma(float64(n - i + 1))
			sum += math.Exp(lg - li - lr + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		}
		if sum > .05 {
			lo = p
		} else {
			hi = p
		}
	}
	return hi
}

func TestABadCanaryIsFoundSoon(t *testing.T) {
	noStartup := judge.Defaults()
	noStartup.Startup = judge.Startup{}
	for _, tt := range []struct {
		name           string
		config         judge.Config
		rate           float64 // both versions; the canary gets a tenth
		stable, canary float64
		median, most   int // windows
	}{
		{"5 % failing at 10 canary requests a second", noStartup, 100, 0, .05, 2, 6},
		{"the same with the start-up phase", judge.Defaults(), 100, 0, .05, 5, 8},
		{"half failing at 1 canary request a second", noStartup, 10, .001, .5, 2, 5},
		{"1 pp more at 100 canary requests a second", noStartup, 1000, .001, .011, 2, 7},
		{"1 pp more on a base of 1 %", noStartup, 1000, .01, .02, 12, 32},
		{"all failing", noStartup, 100, 0, 1, 2, 2},
		{"all failing in the start-up phase", judge.Defaults(), 100, 0, 1, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const runs = 500
			windows := make([]int, 0, runs)
			for run := range runs {
				flow := newTraffic(uint64(run), tt.rate)
				flow.stable, flow.canary = always(tt.stable), always(tt.canary)
				at, _ := untilFailed(tt.config, flow, time.Hour)
				windows = append(windows, int(at/flow.length))
			}
			slices.Sort(windows)
			median, most := windows[runs/2], windows[runs*99/100]
			t.Logf("%s: median %d windows of 5 s, 99 %% within %d", tt.name, median, most)
			cold := map[bool]string{true: ", from a cold start"}[tt.config.Startup != noStartup.Startup]
			row := fmt.Sprintf("| %v %% | %v %% | %v%s | ", 100*tt.stable, math.Round(1000*tt.canary)/10, tt.rate/10, cold)
			wantOnPage(t, row, fmt.Sprintf("%s%d s | %d s |", row, 5*median, 5*most))
			if median > tt.median || most > tt.most {
				t.Errorf("found in %d windows (median), %d (99 %%); want at most %d and %d", median, most, tt.median, tt.most)
			}
		})
	}
}

func TestADefectThatBeginsLateIsStillFoundSoon(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration
		most  int
	}{
		{"after half an hour", 30 * time.Minute, 8},
		{"after twelve hours", 12 * time.Hour, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			flow := newTraffic(1, 100)
			flow.stable = always(.001)
			flow.canary = func(at time.Duration) float64 {
				if at < tt.after {
					return .001
				}
				return .051
			}
			at, failed := untilFailed(judge.Defaults(), flow, tt.after+time.Hour)
			if !failed || at < tt.after {
				t.Fatalf("rolled back at %v (%v), want after %v", at, failed, tt.after)
			}
			windows := int((at - tt.after) / flow.length)
			t.Logf("found after %d windows of 5 s", windows)
			if windows > tt.most {
				t.Errorf("found after %d windows, want at most %d", windows, tt.most)
			}
		})
	}
}

// Simpson's paradox: the weight grows while an incident raises everybody's
// failure rate, so most canary requests were made in bad times. In total the
// canary looks far worse; in no window it is.
func TestTotalsOverSeveralWeightsDeceiveNoUser(t *testing.T) {
	for seed := range uint64(200) {
		flow := newTraffic(seed, 200)
		late := func(at time.Duration) float64 {
			if at >= 3*time.Minute {
				return .06
			}
			return .001
		}
		flow.stable, flow.canary, flow.weight = late, late, planned
		var (
			s              judge.State
			r              judge.Result
			canary, stable analysis.Variant
		)
		for flow.at < 5*time.Minute {
			w := flow.next()
			canary.Requests, canary.Failures = canary.Requests+w.Canary.Requests, canary.Failures+w.Canary.Failures
			stable.Requests, stable.Failures = stable.Requests+w.Stable.Requests, stable.Failures+w.Stable.Failures
			if s, r = judge.Defaults().Next(s, w); r.Verdict == judge.Fail {
				t.Fatalf("seed %d: rolled back after %v: %s", seed, flow.at, r.Explain())
			}
		}
		if z := standardised(canary, stable); z < 10 {
			t.Fatalf("seed %d: the totals differ by %.1f standard errors only: this traffic is no trap", seed, z)
		}
	}
}

// standardised is by how many standard errors the failure rates differ.
func standardised(a, b analysis.Variant) float64 {
	pa, pb := float64(a.Failures)/float64(a.Requests), float64(b.Failures)/float64(b.Requests)
	return (pa - pb) / math.Sqrt(pa*(1-pa)/float64(a.Requests)+pb*(1-pb)/float64(b.Requests))
}

func TestOneWindowAloneNeverRollsBackAFreshCanary(t *testing.T) {
	for _, n := range []int64{1, 100, 1e6, 1e12} {
		flow := newTraffic(1, 1)
		bad := func() analysis.Window {
			w := flow.next()
			w.Canary, w.Stable = analysis.Variant{Requests: n, Failures: n}, analysis.Variant{Requests: n}
			return w
		}
		s, first := judge.Defaults().Next(judge.State{}, bad())
		if first.Verdict == judge.Fail {
			t.Errorf("%d failures in one window: rolled back at once, with evidence %v", n, first.Evidence)
		}
		_, second := judge.Defaults().Next(s, bad())
		if n >= 100 && second.Verdict != judge.Fail {
			t.Errorf("%d failures in each of two windows: %s, want Fail", n, second.Verdict)
		}
	}
}

func TestAWindowInWhichOneVersionAnsweredNothingIsNoEvidence(t *testing.T) {
	flow := newTraffic(1, 100)
	flow.canary = always(.02)
	var s judge.State
	for range 3 {
		s, _ = judge.Defaults().Next(s, flow.next())
	}
	for name, w := range map[string]analysis.Window{
		"no canary request": {Weight: 10, Stable: analysis.Variant{Requests: 1000, Failures: 1000}},
		"no stable request": {Weight: 10, Canary: analysis.Variant{Requests: 1000, Failures: 1000}},
		"no request":        {Weight: 10},
	} {
		w.Start, w.End = s.End(), s.End().Add(5*time.Second)
		if after, _ := judge.Defaults().Next(s, w); math.Abs(after.Evidence()/s.Evidence()-1) > 1e-8 {
			t.Errorf("%s: evidence = %v, want the %v of before", name, after.Evidence(), s.Evidence())
		}
	}
}
