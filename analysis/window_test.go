// SPDX-License-Identifier: Apache-2.0

package analysis_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
)

func TestWindowMistakesAreNamed(t *testing.T) {
	hist := func(le []float64, counts ...int64) *analysis.Histogram {
		return &analysis.Histogram{LE: le, Counts: counts}
	}
	for _, tt := range []struct {
		name   string
		change func(*analysis.Window)
		want   string
	}{
		{"nothing wrong", func(*analysis.Window) {}, ""},
		{"nothing wrong with latencies", func(w *analysis.Window) { w.Canary.Latency = hist([]float64{.1, 1}, 3, 10) }, ""},
		{"nothing wrong with a total of its own", func(w *analysis.Window) { w.Canary.Latency = hist([]float64{.1, 1}, 3, 10, 12) }, ""},
		{"no start", func(w *analysis.Window) { w.Start = time.Time{} }, "start: missing; give the time at which the window began"},
		{"an empty stretch", func(w *analysis.Window) { w.End = w.Start }, "end: not after start; give the time at which the window ended"},
		{"a far future", func(w *analysis.Window) { w.End = w.End.AddDate(300, 0, 0) }, "end: more than a century ahead; give the time at which the window ended"},
		{"a weight above 100", func(w *analysis.Window) { w.Weight = 101 }, "weight: 101 is outside 0 to 100; give percent"},
		{"negative requests", func(w *analysis.Window) { w.Canary.Requests = -1 }, "canary.requests: -1 is outside 0 to 2^53; give the increase of the counter"},
		{"more requests than can be counted", func(w *analysis.Window) { w.Canary.Requests = math.MaxInt64 }, "canary.requests: 9223372036854775807 is outside 0 to 2^53; give the increase of the counter"},
		{"negative failures", func(w *analysis.Window) { w.Stable.Failures = -2 }, "stable.failures: -2 is negative; give the increase of the counter"},
		{"more failures than requests", func(w *analysis.Window) { w.Stable.Failures = 11 }, "stable.failures: 11 is more than the 10 requests; count each failure as a request too"},
		{"more refused than came", func(w *analysis.Window) { w.Proxies.Failures = 1 }, "proxies.failures: 1 is more than the 0 requests; count each failure as a request too"},
		{"too few counts", func(w *analysis.Window) { w.Canary.Latency = hist([]float64{.1, 1}, 3) }, "canary.latency.counts: 1 counts for 2 bounds; give one for each bound, and optionally the total"},
		{"bounds out of order", func(w *analysis.Window) { w.Canary.Latency = hist([]float64{1, 1}, 3, 4) }, "canary.latency.le[1]: 1; give finite bounds in ascending order"},
		{"a NaN bound", func(w *analysis.Window) { w.Canary.Latency = hist([]float64{math.NaN()}, 3) }, "canary.latency.le[0]: NaN; give finite bounds in ascending order"},
		{"an infinite bound", func(w *analysis.Window) { w.Canary.Latency = hist([]float64{math.Inf(1)}, 3) }, "canary.latency.le[0]: +Inf; give finite bounds in ascending order"},
		{"counts that are not cumulative", func(w *analysis.Window) { w.Stable.Latency = hist([]float64{.1, 1}, 3, 2) }, "stable.latency.counts[1]: 2 is less than the count before it or outside 0 to 2^53; give cumulative counts"},
		{"more timed than answered", func(w *analysis.Window) { w.Stable.Latency = hist([]float64{.1, 1}, 3, 11) }, "stable.latency.counts: more than the requests; give the increase over the same window"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := analysis.Window{Start: at(0), End: at(5), Weight: 10, Canary: analysis.Variant{Requests: 10, Failures: 1}, Stable: analysis.Variant{Requests: 10}}
			tt.change(&w)
			got := ""
			if err := w.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShareWithinNeverInterpolates(t *testing.T) {
	open := &analysis.Histogram{LE: []float64{.1, .5, 1}, Counts: []int64{50, 80, 90}}
	total := &analysis.Histogram{LE: []float64{.1, .5, 1}, Counts: []int64{50, 80, 90, 95}}
	for _, tt := range []struct {
		name  string
		hist  *analysis.Histogram
		limit float64
		want  analysis.Share
	}{
		{"at a bound", open, .5, analysis.Share{Total: 100, Within: 80, Beyond: 20}},
		{"between bounds those in the bucket are unknown", open, .3, analysis.Share{Total: 100, Within: 50, Beyond: 20}},
		{"below the first bound no request is certainly within", open, .05, analysis.Share{Total: 100, Beyond: 50}},
		{"above the last bound no request is certainly beyond", open, 2, analysis.Share{Total: 100, Within: 90}},
		{"with a total of its own", total, 1, analysis.Share{Total: 95, Within: 90, Beyond: 5}},
		{"above the last bound with a total of its own", total, 2, analysis.Share{Total: 95, Within: 90}},
		{"without bounds", &analysis.Histogram{}, 1, analysis.Share{Total: 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.hist.ShareWithin(tt.limit, 100)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestABoundIsTheLeastThatEnoughRequestsMeet(t *testing.T) {
	timed := &analysis.Histogram{LE: []float64{0.1, 1}, Counts: []int64{50, 99}}
	part := &analysis.Histogram{LE: []float64{0.1, 1}, Counts: []int64{5, 9, 10}}
	for name, test := range map[string]struct {
		hist              *analysis.Histogram
		percent, requests int64
		want              float64
		found             bool
	}{
		"half of all":           {timed, 50, 100, 0.1, true},
		"one more":              {timed, 51, 100, 1, true},
		"as many as timed":      {timed, 99, 100, 1, true},
		"beyond the last":       {timed, 100, 100, 0, false},
		"of those timed":        {part, 90, 100, 1, true},
		"of those, beyond":      {part, 91, 100, 0, false},
		"none was timed":        {&analysis.Histogram{LE: []float64{1}, Counts: []int64{0, 0}}, 50, 100, 0, false},
		"there are no requests": {&analysis.Histogram{LE: []float64{1}, Counts: []int64{0}}, 50, 0, 0, false},
	} {
		if got, found := test.hist.Bound(test.percent, test.requests); got != test.want || found != test.found {
			t.Errorf("%s: %v, %v", name, got, found)
		}
	}
}

func TestAQuantileIsEstimatedInsideItsBucket(t *testing.T) {
	timed := &analysis.Histogram{LE: []float64{0.1, 1}, Counts: []int64{50, 99}}
	for name, test := range map[string]struct {
		hist     *analysis.Histogram
		share    float64
		requests int64
		want     float64
		found    bool
	}{
		"on a bound":            {timed, 0.5, 100, 0.1, true},
		"in the first bucket":   {timed, 0.25, 100, 0.05, true},
		"in the last bucket":    {timed, 0.745, 100, 0.55, true},
		"beyond the last":       {timed, 1, 100, 0, false},
		"of those timed":        {&analysis.Histogram{LE: []float64{0.1, 1}, Counts: []int64{5, 9, 10}}, 0.5, 100, 0.1, true},
		"an empty first bucket": {&analysis.Histogram{LE: []float64{0.1, 1}, Counts: []int64{0, 10}}, 0, 10, 0.1, true},
		"a bound of zero":       {&analysis.Histogram{LE: []float64{0, 1}, Counts: []int64{5, 10}}, 0.25, 10, 0, true},
		"none was timed":        {&analysis.Histogram{LE: []float64{1}, Counts: []int64{0, 0}}, 0.5, 100, 0, false},
	} {
		if got, found := test.hist.Quantile(test.share, test.requests); math.Abs(got-test.want) > 1e-12 || found != test.found {
			t.Errorf("%s: %v, %v", name, got, found)
		}
	}
}

// The variants are written as recorded windows are: see docs/analysis.md.
func TestVariantsAreReadFromRecordedWindows(t *testing.T) {
	const line = `{"weight": 20, "canary": {"requests": 512, "failures": 3, "latency": {"le": [0.1, 0.5], "counts": [400, 500]}}, "stable": {"requests": 2048, "failures": 9}}`
	var got analysis.Window
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	want := analysis.Window{
		Weight: 20,
		Canary: analysis.Variant{Requests: 512, Failures: 3, Latency: &analysis.Histogram{LE: []float64{.1, .5}, Counts: []int64{400, 500}}},
		Stable: analysis.Variant{Requests: 2048, Failures: 9},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTargetsAreCopiedAndCompared(t *testing.T) {
	a := analysis.Target{Pods: []analysis.Pod{{UID: "1", Address: "10.0.0.1:80"}}, Stable: "s", Canary: "c"}
	b := a.Clone()
	if !a.Equal(b) {
		t.Error("a clone is not equal")
	}
	b.Pods[0].Address = "10.0.0.2:80"
	if a.Equal(b) || a.Pods[0].Address != "10.0.0.1:80" {
		t.Error("a clone shares its pods")
	}
}
