// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/refusals"
	"github.com/serin-dev/serin/analysis/shares"
)

// full is a state in which as much as possible is stored, from windows with
// every metric that can be compared.
func full(tb testing.TB) State {
	tb.Helper()
	return played(tb, 1001234)
}

// played is full with so many requests of each version in each window.
func played(tb testing.TB, n int64) State {
	tb.Helper()
	c := Defaults()
	c.Startup = Startup{}
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		c.Comparisons = append(c.Comparisons, Comparison{Name: name, Weight: 1, Tolerance: .01})
		if i%2 == 0 {
			c.Limits = append(c.Limits, ValueBetween(name, 0, 1e9))
		} else {
			// Its measurement never ends, so that its counts grow.
			c.Limits = append(c.Limits, Limit{Metric: SuccessRate, Min: 1 / float64(i+1), MinSamples: math.MaxInt64, ConsecutiveFailureLimit: 1})
		}
	}
	hist := &analysis.Histogram{LE: []float64{.1, .2, .4, .8}, Counts: []int64{n / 2, n / 10 * 9, n / 100 * 99, n}}
	busy := analysis.Variant{Requests: n, Failures: 1234, Latency: hist, Spread: analysis.Spread{Proxies: 7, Squares: 3}}
	s := State{}.StartStep(time.Unix(1_700_000_000, 1))
	for i := range 10 {
		start := time.Unix(1_700_000_000, 1).Add(time.Duration(i) * 5 * time.Second)
		w := analysis.Window{Start: start, End: start.Add(5 * time.Second), Weight: 50, Canary: busy, Stable: busy}
		for _, m := range c.Comparisons {
			v := 1.0
			w.Samples = append(w.Samples, analysis.Sample{Name: m.Name, Canary: busy, Stable: busy})
			w.Values = append(w.Values, analysis.Value{Name: m.Name, Value: &v})
		}
		s, _ = c.Next(s, w)
	}
	s.shares = shares.State{Weight: 99, Earlier: 100, Counted: shares.Count{Canary: n, Stable: n}, Found: shares.Count{Canary: n, Stable: n}}
	if !s.shares.Plausible() {
		s.shares.Counted, s.shares.Found = shares.Count{Canary: 1e10, Stable: 1e10}, shares.Count{Canary: 1e10, Stable: 1e10}
	}
	s.refusals = refusals.State{Refused: 1000, Caused: refusals.Limit.Milliseconds(), Usual: 100_000_000}
	return s
}

func TestTheLargestStateFitsIntoFourKilobytesAndIsReadExactly(t *testing.T) {
	for _, n := range []int64{1_001_234, analysis.MaxCount} {
		s := played(t, n)
		for i := range s.metrics {
			want := int32(edges)
			if i == failuresSlot {
				want = 1
			}
			if s.metrics[i].open != want {
				t.Fatalf("metric %d has %d tracks, want %d: this state is not the largest", i, s.metrics[i].open, want)
			}
		}
		text, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d requests in each window: %d bytes", n, len(text))
		if len(text) > stateSize {
			t.Errorf("%d bytes, want at most %d", len(text), stateSize)
		}
		var back State
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("what was read differs (error %v)", err)
		}
	}
}

func TestAStateThatCouldNotHaveComeAboutIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*State){
		"a NaN in the bets":               func(s *State) { s.metrics[0].tracks[0].against[3] = math.NaN() },
		"an infinite bet":                 func(s *State) { s.metrics[1].tracks[2].favour[0] = math.Inf(1) },
		"a negative bet":                  func(s *State) { s.metrics[9].tracks[0].against[0] = -1 },
		"more spent than there was":       func(s *State) { s.spent = 1.1 },
		"more spent in the step":          func(s *State) { s.step.spent = 1.1 },
		"infinite evidence":               func(s *State) { s.merged = math.Inf(1) },
		"a weight of 101":                 func(s *State) { s.weight = 101 },
		"an end before the beginning":     func(s *State) { s.last = s.first - 1 },
		"more failures than requests":     func(s *State) { s.step.canary.failures = s.step.canary.requests + 1 },
		"more after the start-up phase":   func(s *State) { s.step.warm.canary.requests = s.step.canary.requests + 1 },
		"more windows than in the step":   func(s *State) { s.step.warm.windows = s.step.windows + 1 },
		"a negative number of windows":    func(s *State) { s.step.windows, s.step.warm.windows = -1, -1 },
		"more bad events than events":     func(s *State) { s.metrics[0].tracks[0].stable.bad = 1e18 },
		"a usual share of nothing":        func(s *State) { s.metrics[0].tracks[0].usual = 0 },
		"more tracks than there are":      func(s *State) { s.metrics[0].open = edges + 1 },
		"an unknown kind of metric":       func(s *State) { s.metrics[0].kind = histogram + 1 },
		"an unknown outcome of a limit":   func(s *State) { s.limits[0].phase = missing + 1 },
		"a negative dispersion":           func(s *State) { s.dispersion.Total.Squares = -1 },
		"a dispersion of negative times":  func(s *State) { s.dispersion.Span = -1 },
		"a preview of more than it takes": func(s *State) { s.metrics[9].open, s.metrics[9].before.events = 0, thorough },
		"more within than there were":     func(s *State) { s.metrics[9].open, s.metrics[9].before.bounds, s.metrics[9].before.within[0] = 0, 1, 5 },
		"shares of a negative count":      func(s *State) { s.shares.Counted.Stable = -1 },
		"more refused than came":          func(s *State) { s.refusals.Refused = 1001 },
		"an edge that is no number":       func(s *State) { s.metrics[1].tracks[0].edge = math.NaN() },
	} {
		t.Run(name, func(t *testing.T) {
			s := full(t)
			spoil(&s)
			text, err := s.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			var back State
			if err := back.UnmarshalText(text); err == nil {
				t.Error("read without an error")
			}
			if back != (State{}) {
				t.Error("the state was changed")
			}
		})
	}
}
