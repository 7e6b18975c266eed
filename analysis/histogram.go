// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Histogram counts how many requests were answered within each bound.
// Histograms are treated as immutable: they are shared, never changed in place.
type Histogram struct {
	// LE are the upper bounds of the buckets in seconds, ascending and finite.
	LE []float64 `json:"le"`
	// Counts[i] is the number of requests that took at most LE[i], so Counts
	// never descends. A last element beyond the bounds is the number of all
	// requests that were timed (the bucket +Inf); without it every request of
	// the variant was timed.
	Counts []int64 `json:"counts"`
}

// Share says how many requests were within a limit, as far as the bounds of a
// histogram can tell.
type Share struct {
	// Total is the number of requests that were timed.
	Total int64
	// Within is how many certainly met the limit.
	Within int64
	// Beyond is how many certainly missed it. Those between the two nearest
	// bounds are in neither, and both are exact when the limit is a bound.
	Beyond int64
}

// ShareWithin counts the requests that took at most limit seconds. It never
// interpolates inside a bucket. The argument requests is the number of
// requests of the variant.
func (h *Histogram) ShareWithin(limit float64, requests int64) Share {
	s := Share{Total: h.Total(requests)}
	i, exact := slices.BinarySearch(h.LE, limit)
	switch {
	case exact:
		s.Within, s.Beyond = h.Counts[i], s.Total-h.Counts[i]
		return s
	case i < len(h.LE):
		s.Beyond = s.Total - h.Counts[i]
	}
	if i > 0 {
		s.Within = h.Counts[i-1]
	}
	return s
}

// Total is the number of requests that were timed, where requests is that of the variant.
func (h *Histogram) Total(requests int64) int64 {
	if len(h.Counts) > len(h.LE) {
		return h.Counts[len(h.LE)]
	}
	return requests
}

// Bound is the least bound within which that many percent of the timed requests were
// answered, where requests is the number of requests of the variant. It is false when none was
// timed, or when the answer lies beyond the last bound.
func (h *Histogram) Bound(percent, requests int64) (float64, bool) {
	total := h.Total(requests)
	for i, bound := range h.LE {
		if total > 0 && 100*float64(h.Counts[i]) >= float64(percent)*float64(total) {
			return bound, true
		}
	}
	return 0, false
}

// Quantile estimates the latency in seconds that a share of the timed requests, from 0 to 1, did not
// exceed, where requests is the number of requests of the variant: by linear interpolation inside a bucket,
// as histogram_quantile of Prometheus does. It is false when none was timed, or when the answer lies
// beyond the last bound.
func (h *Histogram) Quantile(share float64, requests int64) (float64, bool) {
	total := float64(h.Total(requests))
	var count, lower float64
	for i, bound := range h.LE {
		upTo := float64(h.Counts[i])
		switch rank := share * total; {
		case total == 0:
			return 0, false
		case upTo < rank:
			count, lower = upTo, bound
		case bound <= 0 || upTo <= count:
			return bound, true
		default:
			return lower + (bound-lower)*(rank-count)/(upTo-count), true
		}
	}
	return 0, false
}

func (h *Histogram) validate(requests int64) error {
	bounds := len(h.LE)
	switch len(h.Counts) {
	case bounds + 1:
	case bounds:
		if bounds > 0 && h.Counts[bounds-1] > requests {
			return errors.New("counts: more than the requests; give the increase over the same window")
		}
	default:
		return fmt.Errorf("counts: %d counts for %d bounds; give one for each bound, and optionally the total", len(h.Counts), bounds)
	}
	last := math.Inf(-1)
	for i, le := range h.LE {
		if !(le > last) || math.IsInf(le, 1) {
			return fmt.Errorf("le[%d]: %v; give finite bounds in ascending order", i, le)
		}
		last = le
	}
	return validateCumulative(h.Counts)
}

func validateCumulative(counts []int64) error {
	var last int64
	for i, n := range counts {
		if n < last || n > MaxCount {
			return fmt.Errorf("counts[%d]: %d is less than the count before it or outside 0 to 2^53; give cumulative counts", i, n)
		}
		last = n
	}
	return nil
}

// increase is h - prev. A series that did not exist yet (prev is nil) counts
// from zero; one that vanished or changed its bounds is not the same series.
func (h *Histogram) increase(prev *Histogram) (*Histogram, bool) {
	switch {
	case prev == nil:
		return h, true
	case h == nil || !h.sameBounds(prev):
		return nil, false
	}
	d := &Histogram{LE: h.LE, Counts: make([]int64, len(h.Counts))}
	for i := range h.Counts {
		d.Counts[i] = h.Counts[i] - prev.Counts[i]
	}
	return d, true
}

// plus is h + b, or nil when the bounds differ.
func (h *Histogram) plus(b *Histogram) *Histogram {
	if !h.sameBounds(b) {
		return nil
	}
	sum := &Histogram{LE: h.LE, Counts: make([]int64, len(h.Counts))}
	for i := range h.Counts {
		sum.Counts[i] = h.Counts[i] + b.Counts[i]
	}
	return sum
}

func (h *Histogram) sameBounds(b *Histogram) bool {
	return len(h.Counts) == len(b.Counts) && slices.Equal(h.LE, b.LE)
}
