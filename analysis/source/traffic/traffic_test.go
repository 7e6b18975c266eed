// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var start = sourcetest.Now

// window is the n-th of five seconds.
func window(n int, requests, failures int64, counts ...int64) analysis.Window {
	w := analysis.Window{Start: start.Add(time.Duration(n-1) * 5 * time.Second), End: start.Add(time.Duration(n) * 5 * time.Second)}
	w.Canary = analysis.Variant{Requests: requests, Failures: failures}
	if counts != nil {
		w.Canary.Latency = &analysis.Histogram{LE: []float64{.1, .5, 1}, Counts: counts}
	}
	return w
}

// kept hands out the windows of a test.
func kept(list *[]analysis.Window, reason analysis.Reason) Windows {
	return func(after time.Time) (windows []analysis.Window, h analysis.Health) {
		for _, w := range *list {
			if w.End.After(after) {
				windows = append(windows, w)
			}
		}
		return windows, analysis.Health{Reason: reason}
	}
}

func measure(t *testing.T, q Quantity, windows ...analysis.Window) (source.Sample, error) {
	t.Helper()
	m, err := New(kept(&windows, analysis.ReasonNoPods), q, start)
	if err != nil {
		t.Fatal(err)
	}
	return m.Measure(t.Context(), start.Add(time.Minute))
}

func TestQuantitiesOfTheCanary(t *testing.T) {
	list := []analysis.Window{window(0, 1000, 1000, 0, 0, 0), window(1, 60, 1, 40, 60, 60), window(2, 0, 0), window(3, 40, 1, 10, 39, 40)}
	for q, want := range map[Quantity]float64{SuccessRate: .98, P50: .1, P90: .5, P99: .5} {
		s, err := measure(t, q, list...)
		if diff := cmp.Diff(source.Sample{At: start.Add(15 * time.Second), Value: want}, s); err != nil || diff != "" {
			t.Errorf("%s: %v %s", q, err, diff)
		}
	}
}

func TestWithoutTrafficThereIsNoNumber(t *testing.T) {
	other := window(2, 10, 0)
	other.Canary.Latency = &analysis.Histogram{LE: []float64{.2}, Counts: []int64{10}}
	for name, test := range map[string]struct {
		q       Quantity
		windows []analysis.Window
		want    source.Reason
	}{
		"no window":               {SuccessRate, nil, source.NoData},
		"a window before":         {SuccessRate, []analysis.Window{window(0, 10, 0)}, source.NoData},
		"no request":              {SuccessRate, []analysis.Window{window(1, 0, 0)}, source.NoData},
		"no request that is slow": {P99, []analysis.Window{window(1, 0, 0)}, source.NoData},
		"no latency":              {P99, []analysis.Window{window(1, 10, 0)}, source.Partial},
		"latency for a part":      {P99, []analysis.Window{window(1, 10, 0, 10, 10, 10), window(2, 10, 0)}, source.Partial},
		"other bounds":            {P99, []analysis.Window{window(1, 10, 0, 10, 10, 10), other}, source.Partial},
		"slower than all bounds":  {P99, []analysis.Window{window(1, 10, 0, 1, 1, 1)}, source.NotANumber},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := measure(t, test.q, test.windows...)
			sourcetest.WantMissing(t, s, err, test.want)
		})
	}
}

func TestNoWindowCountsTwice(t *testing.T) {
	list := []analysis.Window{window(1, 10, 5)}
	m, err := New(kept(&list, ""), SuccessRate, start)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := m.Measure(t.Context(), start); err != nil || s.Value != .5 {
		t.Errorf("%+v, %v", s, err)
	}
	s, err := m.Measure(t.Context(), start)
	sourcetest.WantMissing(t, s, err, source.NoData)
	list = append(list, window(2, 10, 0))
	if s, err := m.Measure(t.Context(), start); err != nil || s.Value != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestAnUnknownQuantityIsRefused(t *testing.T) {
	if _, err := New(nil, "P42", start); err == nil {
		t.Error("P42 is measured")
	}
}
