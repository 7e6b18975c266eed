// SPDX-License-Identifier: Apache-2.0

package rivals

import "math"

// mannWhitney is the two-sided Mann–Whitney test of two sorted samples for a
// shift between them, with the normal approximation, the correction for ties and
// the continuity correction: wilcox.test(x, y, conf.int=TRUE, exact=FALSE) of R,
// which Kayenta follows.
type mannWhitney struct{ x, y []float64 }

// quantile is the shift at which the statistic is the normal quantile of p: the
// Hodges–Lehmann estimate for 0.5, and the lower end of the 98 % confidence
// interval for 0.99. The statistic falls in jumps; where it jumps over the
// quantile, the shift just before the jump is returned, so that rounding never
// makes a shift out of none.
func (m mannWhitney) quantile(p float64) float64 {
	z := math.Sqrt2 * math.Erfinv(2*p-1)
	lo, hi := m.x[0]-m.y[len(m.y)-1], m.x[len(m.x)-1]-m.y[0]
	if !(m.statistic(lo) > z) {
		return lo
	}
	if !(m.statistic(hi) < z) {
		return hi
	}
	const halvings = 50
	for range halvings {
		if middle := lo + (hi-lo)/2; m.statistic(middle) > z {
			lo = middle
		} else {
			hi = middle
		}
	}
	return lo
}

// statistic is that of x − shift against y; it falls as the shift grows.
func (m mannWhitney) statistic(shift float64) float64 {
	n, k := float64(len(m.x)), float64(len(m.y))
	var wins, ties float64
	merge(m.x, m.y, shift, func(x, y, before int) {
		wins += float64(x) * (float64(before) + float64(y)/2)
		t := float64(x + y)
		ties += t*t*t - t
	})
	d := wins - n*k/2
	variance := n * k / 12 * (n + k + 1 - ties/((n+k)*(n+k-1)))
	if variance <= 0 {
		return 0 // everything is tied
	}
	return (d - math.Copysign(.5, d)*sign(d)) / math.Sqrt(variance)
}

// sign is 0 for 0, else 1: there is nothing to correct for continuity at 0.
func sign(d float64) float64 {
	if d == 0 {
		return 0
	}
	return 1
}

// merge visits the values of x − shift and y together in ascending order: how
// many of x and of y are equal there, and how many of y came before.
func merge(x, y []float64, shift float64, visit func(x, y, before int)) {
	for i, j := 0, 0; i < len(x) || j < len(y); {
		value := math.Inf(1)
		if i < len(x) {
			value = x[i] - shift
		}
		if j < len(y) {
			value = min(value, y[j])
		}
		firstX, firstY := i, j
		for i < len(x) && x[i]-shift == value {
			i++
		}
		for j < len(y) && y[j] == value {
			j++
		}
		visit(i-firstX, j-firstY, firstY)
	}
}
