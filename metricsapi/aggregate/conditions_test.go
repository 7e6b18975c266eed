// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"math"
	"testing"

	"github.com/serin-dev/serin/metricsapi/observe"
)

func TestAHistogramNeedsExactlyOneCountForEachBound(t *testing.T) {
	for counts, want := range map[int]bool{1: false, 2: true, 3: false} {
		h := &observe.Histogram{LE: []float64{0.1, 1}, Counts: make([]float64, counts), Total: 1}
		if got := sound(h); got != want {
			t.Errorf("%d counts of 2 bounds: got %v", counts, got)
		}
	}
}

func TestCountsAreBetweenZeroAndWhatIsExact(t *testing.T) {
	for v, want := range map[float64]string{-1: "0", 0: "0", 1.5: "1500m", 7: "7", math.Inf(1): "9007199254740992"} {
		q := count(v)
		if got := q.String(); got != want {
			t.Errorf("%v is written as %s, want %s", v, got, want)
		}
	}
}

func TestAPodWithoutAnOwnerMayHaveAnswered(t *testing.T) {
	w := shop()
	w.pod(key("shop", "owned"), "10.0.0.7", map[observe.Kind]string{observe.Deployments: "a", observe.Services: "both"})
	w.pod(key("shop", "single"), "10.0.0.8", map[observe.Kind]string{observe.Services: "both"})
	if got := newBehind(w).common(observe.Deployments, key("shop", "both")); got != nil {
		t.Errorf("requests to the Service are all counted for %v", got)
	}
}
