// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"math"
	"time"
)

const (
	// lowest is the upper bound of the first bucket.
	lowest = 100 * time.Microsecond
	// growth is the ratio of one bucket's bound to the one before: the error of a quantile.
	growth = 1.05
	// buckets reach above two minutes, more than any timeout.
	buckets = 290
)

// histogram counts latencies in buckets that grow by 5 %.
type histogram struct {
	counts [buckets]int64
	total  int64
}

func (h *histogram) add(latency time.Duration) {
	h.counts[bucketOf(latency)]++
	h.total++
}

// quantile returns the upper bound in milliseconds of the bucket that holds the
// q-th part of the latencies, 0 when there are none.
func (h *histogram) quantile(q float64) float64 {
	if h.total == 0 {
		return 0
	}
	rank, seen := int64(math.Ceil(q*float64(h.total))), int64(0)
	for bucket, count := range h.counts {
		if seen += count; seen >= rank {
			return math.Round(boundOf(bucket)*1000) / 1000
		}
	}
	return boundOf(buckets - 1)
}

func (h *histogram) quantiles() Quantiles {
	return Quantiles{P50: h.quantile(0.5), P90: h.quantile(0.9), P99: h.quantile(0.99)}
}

// bucketOf returns the bucket whose bound is the first at or above the latency.
func bucketOf(latency time.Duration) int {
	if latency <= lowest {
		return 0
	}
	n := int(math.Ceil(math.Log(float64(latency)/float64(lowest)) / math.Log(growth)))
	return min(n, buckets-1)
}

// boundOf is the upper bound of a bucket in milliseconds.
func boundOf(bucket int) float64 {
	return lowest.Seconds() * 1000 * math.Pow(growth, float64(bucket))
}
