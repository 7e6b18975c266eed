// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// steady is a release in full swing: failures, three edges of the latency and
// three limits, over four proxies.
func steady() (judge.Config, analysis.Window) {
	c := judge.Defaults()
	c.Limits = []judge.Limit{judge.MinSuccessRate(.9), judge.MaxLatency(.9, 500*time.Millisecond), judge.MaxLatency(.99, time.Second)}
	canary, stable := timed(500, 250, 451, 496, 500), timed(4500, 2250, 4050, 4455, 4500)
	canary.Failures, stable.Failures = 1, 5
	stable.Spread = analysis.Spread{Proxies: 4, Squares: .011}
	return c, window(0, 10, canary, stable)
}

// many adds eight metrics of the user, as histograms.
func many() (judge.Config, analysis.Window) {
	c, w := steady()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		c.Comparisons = append(c.Comparisons, judge.Comparison{Name: name, Weight: 1, Tolerance: .01})
		w.Samples = append(w.Samples, analysis.Sample{Name: name, Canary: w.Canary, Stable: w.Stable})
	}
	return c, w
}

// started is the state after some windows.
func started(c judge.Config, w *analysis.Window) judge.State {
	s := judge.State{}
	for range 20 {
		s, _ = c.Next(s, *w)
		w.Start, w.End = w.End, w.End.Add(5*time.Second)
	}
	return s
}

func TestNextAllocatesNothing(t *testing.T) {
	for name, input := range map[string]func() (judge.Config, analysis.Window){"steady": steady, "many metrics": many} {
		c, w := input()
		s := started(c, &w)
		if n := testing.AllocsPerRun(100, func() {
			s, _ = c.Next(s, w)
			w.Start, w.End = w.End, w.End.Add(5*time.Second)
		}); n != 0 {
			t.Errorf("%s: %v allocations for one window, want none", name, n)
		}
		if s.Evidence() == 1 {
			t.Errorf("%s: evidence 1: nothing was compared", name)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for name, input := range map[string]func() (judge.Config, analysis.Window){"steady": steady, "eight histograms more": many} {
		b.Run(name, func(b *testing.B) {
			c, w := input()
			s := started(c, &w)
			b.ReportAllocs()
			for b.Loop() {
				s, _ = c.Next(s, w)
				w.Start, w.End = w.End, w.End.Add(5*time.Second)
			}
		})
	}
}

// BenchmarkFiveThousandRollouts is what happens every five seconds where 5,000
// releases are in progress: read the state, judge, store the state.
func BenchmarkFiveThousandRollouts(b *testing.B) {
	const rollouts, every = 5000, 5 * time.Second
	c, w := steady()
	text, err := started(c, &w).MarshalText()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for range rollouts {
			var s judge.State
			if err := s.UnmarshalText(text); err != nil {
				b.Fatal(err)
			}
			next, _ := c.Next(s, w)
			if _, err := next.MarshalText(); err != nil {
				b.Fatal(err)
			}
		}
	}
	perRound := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(100*perRound/every.Seconds(), "%core")
	b.ReportMetric(float64(len(text)), "bytes")
}
