// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
)

// The figures are those of Kayenta's own test (MannWhitneySuite): the 95 %
// interval of the shift is 6 to 39 and the estimate 22.5. The estimate lies where
// the statistic is zero, from 18.5 on to 26.5; its middle depends on the solver.
func TestMannWhitneyAgreesWithKayentasTest(t *testing.T) {
	m := mannWhitney{x: []float64{10, 20, 30, 40}, y: []float64{1, 2, 3, 4}}
	if got := m.quantile(.975); math.Abs(got-6) > 1e-4 {
		t.Errorf("lower end %v, want 6", got)
	}
	if got := m.quantile(.025); math.Abs(got-39) > 1e-4 {
		t.Errorf("upper end %v, want 39", got)
	}
	if m.statistic(22.5) != 0 {
		t.Errorf("the statistic at the estimate is %v, want 0", m.statistic(22.5))
	}
}

func TestMannWhitneyCorrectsForTies(t *testing.T) {
	z := mannWhitney{x: []float64{1, 2, 2, 3}, y: []float64{2, 3, 4, 5}}.statistic(0)
	// W = 0 + 2·0.5 + 1.5 = 2.5; d = 2.5 − 8 = −5.5; ties 3·(9−1) + 2·(4−1) = 30;
	// variance 16/12·(9 − 30/56) = 11.2857; z = (−5.5 + 0.5)/√11.2857 = −1.48835.
	if math.Abs(z+1.4883514) > 1e-6 {
		t.Errorf("statistic %v, want -1.4883514", z)
	}
}

func TestMannWhitneyOfShiftedSamplesFindsTheShift(t *testing.T) {
	var x, y []float64
	for i := range 101 {
		y = append(y, float64(i*i))
		x = append(x, float64(i*i)+3)
	}
	if got := (mannWhitney{x, y}).quantile(.5); math.Abs(got-3) > 1e-6 {
		t.Errorf("estimate %v, want 3", got)
	}
}

func TestOutliersBeyondBothFencesAreRemoved(t *testing.T) {
	points := make([]float64, 0, 201)
	for i := range 200 {
		points = append(points, 10+float64(i%10))
	}
	points = append(points, 1000)
	if got := withoutOutliers(points); slices.Max(got) != 19 || len(got) != 200 {
		t.Errorf("%d points up to %v remain", len(got), slices.Max(got))
	}
	// Among few points the extreme one is the 99th percentile itself, and stays.
	few := []float64{1, 1, 1, 2, 2, 2, 50}
	if diff := cmp.Diff(few, withoutOutliers(few)); diff != "" {
		t.Error(diff)
	}
	if got := withoutOutliers(nil); got != nil {
		t.Errorf("of nothing remains %v", got)
	}
}

func TestPercentileIsThatOfCommonsMath(t *testing.T) {
	sorted := []float64{1, 2, 3, 4}
	for q, want := range map[float64]float64{1: 1, 25: 1.25, 50: 2.5, 75: 3.75, 99: 4} {
		if got := percentile(sorted, q); got != want {
			t.Errorf("percentile %v = %v, want %v", q, got, want)
		}
	}
}

func TestKayenta(t *testing.T) {
	varied := func(base int64) minute {
		return minute{50, analysis.Variant{Requests: 1000, Failures: base}, analysis.Variant{Requests: 1000, Failures: 10}}
	}
	if got := play(t, NewKayenta(plan), repeat(varied(10), 10)...); got[9] != promote {
		t.Errorf("equal points: %v", got)
	}
	if got := play(t, NewKayenta(plan), varied(50)); got[0] != rollBack {
		t.Errorf("the canary always fails more: %v", got)
	}
	if got := play(t, NewKayenta(plan), repeat(varied(1), 10)...); got[9] != promote {
		t.Errorf("a lower failure rate is no reason to roll back: %v", got)
	}
	if got := play(t, NewKayenta(plan), repeat(none, 10)...); got[9] != promote {
		t.Errorf("points without requests are no points: %v", got)
	}
}

// One failure in an interval of which all other points are zero says nothing.
func TestKayentaIsNotMovedByASingleFailure(t *testing.T) {
	k := NewKayenta(plan)
	for i := range 12 {
		w := analysis.Window{Canary: analysis.Variant{Requests: 3}, Stable: analysis.Variant{Requests: 60}}
		if i == 5 {
			w.Canary.Failures = 1
		}
		w.End = w.Start.Add(Interval / 12)
		if got := k.Next(w); got == policy.RollBack {
			t.Fatalf("window %d: %s", i, got)
		}
	}
}
