// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// checkSound plays one window on a state and checks that nothing is poisoned.
func checkSound(t *testing.T, s judge.State) {
	t.Helper()
	w := window(0, 50, arm(1000, 10), arm(1000, 10))
	if end := s.End(); !end.IsZero() && end.Before(time.Unix(1<<32, 0)) {
		w.Start, w.End = end, end.Add(5*time.Second)
	}
	s, r := judge.Defaults().Next(s, w)
	if !(r.Evidence >= 0) || math.IsInf(r.Evidence, 0) {
		t.Errorf("evidence = %v", r.Evidence)
	}
	stored(t, s)
	if r.Explain() == "" {
		t.Errorf("no explanation for %s", r.Reason)
	}
}

func FuzzNext(f *testing.F) {
	f.Add(int64(0), int64(5e9), int32(10), int64(100), int64(5), int64(900), int64(1), .5, int64(50))
	f.Add(int64(-1), int64(0), int32(-1), int64(-1), int64(2), int64(0), int64(-9), math.NaN(), int64(-1))
	f.Add(int64(1), int64(math.MaxInt64), int32(100), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(0), math.Inf(1), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, start, length int64, weight int32, nc, kc, ns, ks int64, le float64, within int64) {
		c := plain(judge.MinSuccessRate(.99), judge.MaxLatency(.99, time.Second))
		s, _ := c.Next(judge.State{}, window(0, 50, arm(100, 1), arm(100, 1)))
		w := analysis.Window{Start: time.Unix(0, start), Weight: weight}
		w.End = w.Start.Add(time.Duration(length))
		w.Canary, w.Stable = arm(nc, kc), arm(ns, ks)
		w.Canary.Latency = &analysis.Histogram{LE: []float64{le}, Counts: []int64{within}}
		next, r := c.Next(s, w)
		if !(r.Evidence >= 0) || math.IsInf(r.Evidence, 0) {
			t.Errorf("evidence = %v", r.Evidence)
		}
		if w.Validate() != nil && (next != s || r.Verdict != judge.Inconclusive) {
			t.Errorf("a window that is invalid (%v) changed the state or was judged %s", w.Validate(), r.Verdict)
		}
		if r.Verdict == judge.Fail && kc == 0 && within >= nc {
			t.Errorf("failed a canary that did nothing wrong: %s", r.Explain())
		}
		checkSound(t, stored(t, next))
	})
}
