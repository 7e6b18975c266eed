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

func TestSamplesAndValuesThatCannotBeAreNamedWithTheirFix(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*analysis.Window)
		want   string
	}{
		{"nothing wrong", func(w *analysis.Window) { w.Samples[0].Start = at(-60) }, ""},
		{"a sample without a name", func(w *analysis.Window) { w.Samples[0].Name = "" }, "samples[0].name: empty or too long; give 1 to 63 characters"},
		{"the same sample twice", func(w *analysis.Window) { w.Samples = append(w.Samples, w.Samples[0]) }, `samples[1].name: "orders" is there twice; give each metric once`},
		{"a sample that begins when the window ends", func(w *analysis.Window) { w.Samples[0].Start = w.End }, "samples[0].start: not before the end of the window; give the time at which counting began"},
		{"more bad events than events", func(w *analysis.Window) { w.Samples[0].Canary = variant(1, 2) }, "samples[0].canary.failures: 2 is more than the 1 requests; count each failure as a request too"},
		{"a negative number of events", func(w *analysis.Window) { w.Samples[0].Stable = variant(-1, 0) }, "samples[0].stable.requests: -1 is outside 0 to 2^53; give the increase of the counter"},
		{"too many samples", func(w *analysis.Window) { w.Samples = make([]analysis.Sample, 9) }, "samples: 9; give at most 8"},
		{"a value without a name", func(w *analysis.Window) { w.Values[0].Name = "" }, "values[0].name: empty or too long; give 1 to 63 characters"},
		{"the same value twice", func(w *analysis.Window) { w.Values = append(w.Values, w.Values[0]) }, `values[1].name: "queue" is there twice; give each metric once`},
		{"too many values", func(w *analysis.Window) { w.Values = make([]analysis.Value, 9) }, "values: 9; give at most 8"},
		{"proxies that cannot be", func(w *analysis.Window) { w.Stable.Spread = analysis.Spread{Proxies: -1} }, "stable.spread: -1 proxies, squares 0 for 2 failures; give the sum of failures²/requests over the proxies, or leave it out"},
		{"squares that cannot be", func(w *analysis.Window) { w.Stable.Spread = analysis.Spread{Proxies: 2, Squares: 3} }, "stable.spread: 2 proxies, squares 3 for 2 failures; give the sum of failures²/requests over the proxies, or leave it out"},
		{"squares that are no number", func(w *analysis.Window) { w.Stable.Spread = analysis.Spread{Proxies: 2, Squares: math.NaN()} }, "stable.spread: 2 proxies, squares NaN for 2 failures; give the sum of failures²/requests over the proxies, or leave it out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := analysis.Window{
				Start: at(0), End: at(5), Canary: variant(10, 1), Stable: variant(90, 2),
				Samples: []analysis.Sample{{Name: "orders", Canary: variant(3, 0), Stable: variant(20, 1)}},
				Values:  []analysis.Value{{Name: "queue"}},
			}
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

func TestAValueIsANumberOrMissing(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	for name, tt := range map[string]struct {
		value *float64
		ok    bool
	}{
		"a number":          {number(-3), true},
		"none":              {nil, false},
		"NaN":               {number(math.NaN()), false},
		"infinity":          {number(math.Inf(1)), false},
		"negative infinity": {number(math.Inf(-1)), false},
	} {
		if x, ok := (analysis.Value{Value: tt.value}).Get(); ok != tt.ok || ok && x != *tt.value {
			t.Errorf("%s: %v, %v", name, x, ok)
		}
	}
}

func TestWindowsKeepSamplesAndMissingValuesInJSON(t *testing.T) {
	x := 2.5
	want := analysis.Window{
		Start: at(0), End: at(5), Weight: 10, Canary: variant(10, 1), Stable: variant(90, 2),
		Samples: []analysis.Sample{{Name: "orders", Start: at(-55).UTC(), Canary: variant(3, 0), Stable: variant(20, 1)}},
		Values:  []analysis.Value{{Name: "queue", Value: &x}, {Name: "load"}},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got analysis.Window
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s\n%s", diff, text)
	}
}

func TestSamplesAndValuesAreFoundByTheirNames(t *testing.T) {
	w := analysis.Window{Samples: []analysis.Sample{{Name: "a"}, {Name: "b", Start: time.Unix(5, 0)}}, Values: []analysis.Value{{Name: "c"}}}
	if s := w.Sample("b"); s == nil || s.Start.Unix() != 5 {
		t.Errorf("Sample(b) = %v", s)
	}
	if w.Sample("c") != nil || w.Value("a") != nil || w.Value("c") == nil {
		t.Error("a sample was taken for a value, or a value for a sample")
	}
}
