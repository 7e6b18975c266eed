// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"github.com/serin-dev/serin/analysis"
)

// Latency says how long a version takes to answer: a log-normal distribution,
// and a share of requests that take longer.
type Latency struct {
	// Median in seconds. Half a power of e is one standard deviation, so that the
	// p99 is 3.2 medians.
	Median float64
	// Late is the share of requests that take Delay seconds longer.
	Late, Delay float64
}

// spread is the standard deviation of the logarithm.
const spread = .5

// bounds are those of the proxy's histograms, in seconds: 1, 2, 3, 5 and 7.5
// times the powers of ten from a millisecond on.
var bounds = func() []float64 {
	var le []float64
	for exponent := -3; exponent < 1; exponent++ {
		for _, mantissa := range []float64{1, 2, 3, 5, 7.5} {
			le = append(le, mantissa*math.Pow(10, float64(exponent)))
		}
	}
	return append(le, 10)
}()

// within is the share of requests answered within so many seconds.
func (l Latency) within(seconds float64) float64 {
	usual := l.logNormal(seconds)
	if l.Late == 0 {
		return usual
	}
	return (1-l.Late)*usual + l.Late*l.logNormal(seconds-l.Delay)
}

func (l Latency) logNormal(seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return math.Erfc(-math.Log(seconds/l.Median)/(spread*math.Sqrt2)) / 2
}

// histogram draws the latencies of n requests.
func (l Latency) histogram(r random, n int64) *analysis.Histogram {
	h := &analysis.Histogram{LE: bounds, Counts: make([]int64, len(bounds)+1)}
	left, below := n, 0.0
	for i, le := range bounds {
		p := l.within(le)
		if left > 0 && p > below {
			left -= r.failures(left, (p-below)/(1-below))
		}
		below = p
		h.Counts[i] = n - left
	}
	h.Counts[len(bounds)] = n
	return h
}
