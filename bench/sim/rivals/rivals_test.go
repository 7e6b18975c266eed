// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
)

const plan = 10 * time.Minute

type rule interface {
	Next(w analysis.Window) policy.Action
}

// minute is one minute of twelve equal windows.
type minute struct {
	weight         int32
	canary, stable analysis.Variant // of each window
}

// good and bad are minutes in which nothing and a tenth of the canary's requests fail.
var (
	good = minute{10, analysis.Variant{Requests: 100}, analysis.Variant{Requests: 900}}
	bad  = minute{10, analysis.Variant{Requests: 100, Failures: 10}, analysis.Variant{Requests: 900}}
	none = minute{10, analysis.Variant{}, analysis.Variant{Requests: 900}}
)

// play plays minutes and returns the action at the end of each; it stops after
// a rollback or a promotion, and fails if a rule acts within a minute that may not.
func play(t *testing.T, r rule, minutes ...minute) []policy.Action {
	t.Helper()
	var actions []policy.Action
	now := time.Unix(1_700_000_000, 0)
	for i, m := range minutes {
		for window := range 12 {
			w := analysis.Window{Start: now, End: now.Add(5 * time.Second), Weight: m.weight, Canary: m.canary, Stable: m.stable}
			now = w.End
			action := r.Next(w)
			if window < 11 && action != policy.Hold {
				t.Fatalf("minute %d: %s in window %d", i, action, window)
			}
			if window == 11 {
				actions = append(actions, action)
			}
			if action == policy.RollBack || action == policy.Promote {
				return actions
			}
		}
	}
	return actions
}

// repeat is a minute n times.
func repeat(m minute, n int) []minute {
	out := make([]minute, n)
	for i := range out {
		out[i] = m
	}
	return out
}

const (
	hold     = policy.Hold
	step     = policy.Step
	promote  = policy.Promote
	rollBack = policy.RollBack
)

func TestFlagger(t *testing.T) {
	// The limits are those of the documentation: a success rate of 99 is not below 99.
	edge := minute{10, analysis.Variant{Requests: 100, Failures: 1}, analysis.Variant{Requests: 900}}
	for _, tt := range []struct {
		name    string
		minutes []minute
		want    []policy.Action
	}{
		{"ten passed checks promote", repeat(good, 12), []policy.Action{step, step, step, step, step, step, step, step, step, promote}},
		{"a dead canary lives six minutes, at the first weight", repeat(bad, 12), []policy.Action{hold, hold, hold, hold, hold, rollBack}},
		{"no traffic is a failed check", repeat(none, 12), []policy.Action{hold, hold, hold, hold, hold, rollBack}},
		{"exactly 99 % passes", repeat(edge, 3), []policy.Action{step, step, step}},
		{
			"failed checks are never forgotten",
			[]minute{bad, good, bad, good, bad, good, bad, good, bad, good},
			[]policy.Action{hold, step, hold, step, hold, step, hold, step, hold, rollBack},
		},
		{"a failed check delays the promotion", append([]minute{bad}, repeat(good, 10)...), []policy.Action{hold, step, step, step, step, step, step, step, step, step, promote}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, play(t, NewFlagger(plan), tt.minutes...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestArgo(t *testing.T) {
	edge := minute{10, analysis.Variant{Requests: 100, Failures: 1}, analysis.Variant{Requests: 900}}
	for _, tt := range []struct {
		name    string
		minutes []minute
		want    []policy.Action
	}{
		{"the schedule goes on by itself", repeat(good, 12), []policy.Action{step, step, step, step, step, step, step, step, step, promote}},
		{"the fourth failure aborts, and the weights rise until then", repeat(bad, 12), []policy.Action{step, step, step, rollBack}},
		{"exactly failureLimit failures do not", append(repeat(bad, 3), repeat(good, 7)...), []policy.Action{step, step, step, step, step, step, step, step, step, promote}},
		{"failures need not be in a row", []minute{bad, good, bad, good, bad, good, bad}, []policy.Action{step, step, step, step, step, step, rollBack}},
		{"NaN does not satisfy a successCondition", repeat(none, 12), []policy.Action{step, step, step, rollBack}},
		{"exactly 99 % succeeds", repeat(edge, 5), []policy.Action{step, step, step, step, step}},
		{"a failure at the planned end still counts", append(repeat(bad, 3), append(repeat(good, 6), bad)...), []policy.Action{step, step, step, step, step, step, step, step, step, rollBack}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, play(t, NewArgo(plan), tt.minutes...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestArgoOnTheDifferenceIsNotDeceivedByAnIncident(t *testing.T) {
	both := minute{10, analysis.Variant{Requests: 100, Failures: 10}, analysis.Variant{Requests: 900, Failures: 90}}
	if got := play(t, NewArgoDifference(plan), repeat(both, 10)...); got[len(got)-1] != promote {
		t.Errorf("both fail equally: %v", got)
	}
	if got := play(t, NewArgoDifference(plan), repeat(bad, 10)...); len(got) != 4 || got[3] != rollBack {
		t.Errorf("the canary fails more: %v", got)
	}
	if got := play(t, NewArgoDifference(plan), repeat(none, 10)...); len(got) != 4 || got[3] != rollBack {
		t.Errorf("no traffic: %v", got)
	}
}

func TestThresholdsOnLatency(t *testing.T) {
	timed := func(slow int64) minute {
		m := good
		m.canary.Latency = &analysis.Histogram{LE: []float64{.1, .5, 1}, Counts: []int64{100 - slow, 100 - slow, 100, 100}}
		return m
	}
	for _, r := range []rule{NewFlagger(plan), NewArgo(plan)} {
		if got := play(t, r, repeat(timed(1), 10)...); got[len(got)-1] != promote {
			t.Errorf("%T with a p99 of 0.5 s: %v", r, got)
		}
	}
	if got := play(t, NewFlagger(plan), repeat(timed(2), 10)...); len(got) != 6 || got[5] != rollBack {
		t.Errorf("Flagger with a p99 of 0.75 s: %v", got)
	}
	if got := play(t, NewArgo(plan), repeat(timed(2), 10)...); len(got) != 4 || got[3] != rollBack {
		t.Errorf("Argo with a p99 of 0.75 s: %v", got)
	}
}

// Each metric of an AnalysisRun has a failureLimit of its own.
func TestArgoDoesNotAddUpFailuresOfDifferentMetrics(t *testing.T) {
	slow := good
	slow.canary.Latency = &analysis.Histogram{LE: []float64{.1, .5, 1}, Counts: []int64{0, 0, 100, 100}}
	failing := bad
	failing.canary.Latency = &analysis.Histogram{LE: []float64{.1, .5, 1}, Counts: []int64{100, 100, 100, 100}}
	got := play(t, NewArgo(plan), slow, slow, slow, failing, failing, failing, failing)
	if diff := cmp.Diff([]policy.Action{step, step, step, step, step, step, rollBack}, got); diff != "" {
		t.Error(diff)
	}
}

func TestQuantileInterpolatesAsPrometheusDoes(t *testing.T) {
	h := histogram{le: []float64{.1, .2, .5}, counts: []float64{10, 30, 40, 50}}
	for q, want := range map[float64]float64{.1: .05, .2: .1, .4: .15, .6: .2, .7: .35, .99: .5} {
		if got := h.quantile(q); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile(%v) = %v, want %v", q, got, want)
		}
	}
	if got := (histogram{le: []float64{.1}, counts: []float64{0, 0}}).quantile(.5); !math.IsNaN(got) {
		t.Errorf("without observations: %v, want NaN", got)
	}
}

func TestZTest(t *testing.T) {
	// 30 of 1000 against 10 of 1000: pooled 0.02, z = 0.02/sqrt(0.02·0.98·2/1000) = 3.1943828…
	z := &ZTest{canary: counts{1000, 30}, stable: counts{1000, 10}}
	if got := z.score(); math.Abs(got-3.194382824999699) > 1e-12 {
		t.Errorf("score = %v", got)
	}
	for name, z := range map[string]*ZTest{
		"no requests": {}, "no canary": {stable: counts{1000, 10}}, "no failure": {canary: counts{10, 0}, stable: counts{90, 0}},
		"nothing but failures": {canary: counts{10, 10}, stable: counts{90, 90}},
	} {
		if got := z.score(); got != 0 {
			t.Errorf("%s: score %v, want 0", name, got)
		}
	}
}

func TestZTestLooksWhenItSays(t *testing.T) {
	if got := play(t, NewPeekingZ(plan), bad); got[0] != rollBack {
		t.Errorf("peeking: %v", got)
	}
	got := play(t, NewFixedZ(plan), repeat(bad, 10)...)
	if len(got) != 10 || got[8] != step || got[9] != rollBack {
		t.Errorf("once: %v", got)
	}
	if got := play(t, NewFixedZ(plan), repeat(good, 10)...); got[9] != promote {
		t.Errorf("once, good: %v", got)
	}
}

// Totals over several weights deceive the tests that use them: Simpson's paradox.
func TestTheTotalsOfAnIncidentAtAHighWeightDeceiveTheZTest(t *testing.T) {
	quiet := minute{5, analysis.Variant{Requests: 50}, analysis.Variant{Requests: 950}}
	incident := minute{50, analysis.Variant{Requests: 500, Failures: 25}, analysis.Variant{Requests: 500, Failures: 25}}
	if got := play(t, NewFixedZ(plan), append(repeat(quiet, 5), repeat(incident, 5)...)...); got[9] != rollBack {
		t.Errorf("got %v", got)
	}
	if got := play(t, NewLindonMalek(plan), append(repeat(quiet, 5), repeat(incident, 5)...)...); got[9] != promote {
		t.Errorf("the sequential test conditions on the weight, got %v", got)
	}
}

// The Bayes factor is the product of the predictive probabilities of a Pólya urn
// over those of the null hypothesis.
func TestLindonMalekIsTheProductOfItsPredictions(t *testing.T) {
	const rho, k = .2, 100
	sequence := []bool{true, false, false, true, true, false, true, true, false, false, false, true}
	var want float64
	l := &LindonMalek{K: k, weight: 20}
	a, b := k*rho, k*(1-rho)
	for _, canary := range sequence {
		if canary {
			want += math.Log(a / (a + b) / rho)
			a++
			l.canary++
		} else {
			want += math.Log(b / (a + b) / (1 - rho))
			b++
			l.stable++
		}
		if got := l.logBayesFactor(); math.Abs(got-want) > 1e-9 {
			t.Fatalf("after %v and %v failures: %v, want %v", l.canary, l.stable, got, want)
		}
	}
}

// The expected Bayes factor over all outcomes is 1 under the null hypothesis.
func TestLindonMalekIsAMartingale(t *testing.T) {
	const n, rho = 30, .1
	var sum float64
	for k := range n + 1 {
		lg, _ := math.Lgamma(n + 1)
		lk, _ := math.Lgamma(float64(k + 1))
		lr, _ := math.Lgamma(float64(n - k + 1))
		p := math.Exp(lg - lk - lr + float64(k)*math.Log(rho) + float64(n-k)*math.Log1p(-rho))
		l := &LindonMalek{K: 100, weight: 10, canary: float64(k), stable: float64(n - k)}
		sum += p * math.Exp(l.logBayesFactor())
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("expectation %v, want 1", sum)
	}
}

func TestLindonMalekRollsBackOnlyWhatFailsMore(t *testing.T) {
	better := minute{50, analysis.Variant{Requests: 500}, analysis.Variant{Requests: 500, Failures: 50}}
	if got := play(t, NewLindonMalek(plan), repeat(better, 10)...); got[9] != promote {
		t.Errorf("the canary fails less: %v", got)
	}
	l := NewLindonMalek(plan)
	w := analysis.Window{End: time.Time{}.Add(5 * time.Second), Weight: 50, Canary: better.stable, Stable: better.canary}
	if first := l.Next(w); first != rollBack {
		t.Errorf("50 of 50 failures are the canary's: %s", first)
	}
}

func TestLindonMalekKeepsItsFactorWhenTheWeightChanges(t *testing.T) {
	l := NewLindonMalek(plan)
	l.Next(analysis.Window{End: time.Time{}.Add(5 * time.Second), Weight: 10, Canary: analysis.Variant{Requests: 10, Failures: 3}, Stable: analysis.Variant{Requests: 90}})
	before := l.logBayesFactor()
	l.Next(analysis.Window{End: time.Time{}.Add(5 * time.Second), Weight: 20, Canary: analysis.Variant{Requests: 10}, Stable: analysis.Variant{Requests: 90}})
	if l.log != before || before <= 0 {
		t.Errorf("kept %v of %v", l.log, before)
	}
}
