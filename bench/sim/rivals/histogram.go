// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"math"
	"slices"

	"github.com/serin-dev/serin/analysis"
)

// histogram adds up latencies; the zero value has seen none.
type histogram struct {
	le     []float64
	counts []float64
}

func (h *histogram) add(o *analysis.Histogram) {
	if o == nil {
		return
	}
	if h.le == nil {
		h.le, h.counts = o.LE, make([]float64, len(o.Counts))
	}
	for i, n := range o.Counts {
		h.counts[i] += float64(n)
	}
}

// measured reports whether there were latencies at all.
func (h histogram) measured() bool { return h.le != nil }

// quantile is Prometheus' histogram_quantile: linear interpolation in the
// bucket, 0 as the lower bound of the first one, the highest finite bound for
// what is above it, and NaN without observations.
func (h histogram) quantile(q float64) float64 {
	total := h.counts[len(h.counts)-1]
	if total == 0 {
		return math.NaN()
	}
	rank := q * total
	i, _ := slices.BinarySearch(h.counts, rank)
	if i >= len(h.le) {
		return h.le[len(h.le)-1]
	}
	var lower, before float64
	if i > 0 {
		lower, before = h.le[i-1], h.counts[i-1]
	}
	return lower + (h.le[i]-lower)*(rank-before)/(h.counts[i]-before)
}
