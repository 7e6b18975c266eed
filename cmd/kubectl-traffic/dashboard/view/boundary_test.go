// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// linesOf is a recording that a test may change.
func linesOf(t *testing.T, stored string) []recording.Line {
	t.Helper()
	lines, err := recording.ReadText(stored)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func made(t *testing.T, lines []recording.Line) *view.Recording {
	t.Helper()
	var text bytes.Buffer
	for _, l := range lines {
		if err := json.NewEncoder(&text).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	r, err := view.MakeRecording(packed(t, text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rollsBackBy is whether the operator's own rules roll back by a window, when the canary fails so
// many more percent of its requests than stable, which fails none, in all windows so far.
func rollsBackBy(t *testing.T, stored string, window int, difference float64) bool {
	t.Helper()
	lines := linesOf(t, stored)[:window+1]
	var requests, failed int64
	for i := range lines {
		requests += *lines[i].Canary.Requests
		failures := int64(math.Round(difference/100*float64(requests))) - failed
		failed += failures
		lines[i].Canary.Failures = &failures
	}
	ends := false
	err := replay.Run(replay.DefaultPlan(), replay.Windows(lines), func(r replay.Result) error {
		ends = ends || r.Action == policy.RollBack
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

func TestTheBoundaryIsTheLeastDifferenceThatWouldHaveRolledBack(t *testing.T) {
	stored := recorded(t, 0)
	r := made(t, linesOf(t, stored))
	known, before := 0, 100.
	for i, p := range r.Points {
		if p.Boundary == nil {
			if rollsBackBy(t, stored, i, 100) {
				t.Errorf("window %d has no boundary, and the release rolls back by it if all requests fail", i)
			}
			continue
		}
		known++
		if at := *p.Boundary; at > before || at < r.Tolerance || !rollsBackBy(t, stored, i, at) || rollsBackBy(t, stored, i, at/1.2) {
			t.Errorf("window %d has the boundary %g after %g", i, at, before)
		}
		before = *p.Boundary
	}
	if known < 20 || before > 5 {
		t.Errorf("%d of %d windows have a boundary; the last one is %g", known, len(r.Points), before)
	}
}

// The canary of this release fails evenly, so that it meets the boundary where it was rolled back.
func TestTheDifferenceMeetsTheBoundaryWhereTheReleaseWasRolledBack(t *testing.T) {
	r := made(t, linesOf(t, recorded(t, 1)))
	failed := slices.IndexFunc(r.Points, func(p view.Point) bool { return p.Verdict == string(judge.Fail) })
	met := slices.IndexFunc(r.Points, func(p view.Point) bool { return p.Boundary != nil && *p.Boundary <= *p.Difference })
	if failed < 0 || met < failed-1 || met > failed+1 {
		t.Errorf("it failed in window %d and met the boundary in %d", failed, met)
	}
}

func TestThereIsNoBoundaryFromWhereTheReleaseFailsWithoutADifference(t *testing.T) {
	lines := linesOf(t, recorded(t, 0))
	for i := range lines {
		slow := int64(0)
		if i < 8 {
			slow = 40
		}
		lines[i].Canary.Latency = &recording.Latency{LE: []float64{0.1, 0.2}, Counts: []int64{slow, 40}}
		lines[i].Stable.Latency = &recording.Latency{LE: []float64{0.1, 0.2}, Counts: []int64{360, 360}}
		lines[i].Settings = nil
		if i == 0 {
			lines[i].Settings = linesOf(t, recorded(t, 0))[0].Settings
			lines[i].Settings.Judge.LatencyWeight = 0.5
		}
	}
	points := made(t, lines).Points
	if last := points[len(points)-1]; last.Boundary != nil {
		t.Errorf("the release fails by its latency, and the boundary at its end is %g", *last.Boundary)
	}
	if points[7].Boundary == nil {
		t.Error("there is no boundary while it is as fast as stable")
	}
}

func TestLatenciesAreComparedOverAllWindowsSoFar(t *testing.T) {
	timed := func(counts ...int64) *recording.Latency {
		return &recording.Latency{LE: []float64{0.1, 0.2, 0.4}, Counts: counts}
	}
	lines := linesOf(t, recorded(t, 0))[:3]
	for i, of := range []struct{ canary, stable *recording.Latency }{
		{timed(20, 40, 40), timed(360, 360, 360)},
		{timed(0, 0, 40), timed(360, 360, 360)},
		{timed(0, 0, 0), nil},
	} {
		lines[i].Canary.Latency, lines[i].Stable.Latency = of.canary, of.stable
	}
	points := made(t, lines).Points
	// Half of the canary's 40 requests take up to 100 ms; then half of 80 take up to 200 ms. All of
	// stable's take up to 100 ms.
	for i, want := range [][3]float64{{100 - 50, 190 - 95, 198 - 99}, {200 - 50, 380 - 95, 396 - 99}} {
		s := points[i].Slower
		if s == nil || *s.P50 != want[0] || *s.P95 != want[1] || *s.P99 != want[2] {
			t.Errorf("window %d: %v, want %v", i, s, want)
		}
	}
	if points[2].Slower != nil {
		t.Errorf("stable was not timed in the last window: %+v", points[2].Slower)
	}
}
