// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// sum adds flows up.
type sum struct {
	success, failure float64
	// server is whether part of it was seen at the side of the server.
	server bool
	// latency is nil until the first flow, and for good once one has none: a
	// distribution of part of the requests would be biased.
	latency *observe.Histogram
	untimed bool
}

func (s *sum) add(f *flow) {
	s.success += f.Success
	s.failure += f.Failure
	s.server = s.server || f.Side == metricsv1.SideServer
	switch {
	case s.untimed:
	case !sound(f.Latency):
		s.untimed, s.latency = true, nil
	case s.latency == nil:
		s.latency = &observe.Histogram{LE: f.Latency.LE, Counts: slices.Clone(f.Latency.Counts), Total: f.Latency.Total}
	default:
		addHistogram(s.latency, f.Latency)
	}
}

// side at which the sum was observed. The text knows one side for an item: what was
// seen at both is said to be seen by the server.
func (s *sum) side() metricsv1.Side {
	if s.server {
		return metricsv1.SideServer
	}
	return metricsv1.SideClient
}

// sound reports whether a histogram can be one.
func sound(h *observe.Histogram) bool {
	if h == nil || len(h.Counts) != len(h.LE) || !isCount(h.Total) {
		return false
	}
	for _, n := range h.Counts {
		if !isCount(n) {
			return false
		}
	}
	return true
}

// addHistogram adds b to a. Where their bounds differ, those that both have remain: a
// cumulative count is exact at its own bound and unknown between two.
func addHistogram(a, b *observe.Histogram) {
	a.Total += b.Total
	if slices.Equal(a.LE, b.LE) {
		for i, n := range b.Counts {
			a.Counts[i] += n
		}
		return
	}
	le, counts := []float64{}, []float64{}
	for i, bound := range a.LE {
		if j, found := slices.BinarySearch(b.LE, bound); found {
			le, counts = append(le, bound), append(counts, a.Counts[i]+b.Counts[j])
		}
	}
	a.LE, a.Counts = le, counts
}

// quantile is the latency in seconds that a share of the requests did not exceed, by
// linear interpolation inside a bucket as histogram_quantile of Prometheus does, so that
// the same histogram gives the same number here and there
// (https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile).
// False where it is beyond the last bound: Prometheus then returns the bound, which is
// less than the truth.
func quantile(h *observe.Histogram, share float64) (float64, bool) {
	if h == nil || h.Total <= 0 {
		return 0, false
	}
	rank := share * h.Total
	var count, lower float64
	for i, bound := range h.LE {
		if h.Counts[i] < rank {
			count, lower = h.Counts[i], bound
			continue
		}
		if bound <= 0 || h.Counts[i] <= count {
			return bound, true
		}
		return lower + (bound-lower)*(rank-count)/(h.Counts[i]-count), true
	}
	return 0, false
}
