// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// boundary is the edge c = slope·s + d of the null hypothesis, where s and c
// are the failure rates of stable and canary.
type boundary struct{ d float64 }

// rates is a point: the failure rates of both versions.
type rates struct{ s, c float64 }

// alternative is the point bet on for a base rate and an excess; false when it
// is so high that there is nothing to bet on.
func (b boundary) alternative(base, excess float64) (rates, bool) {
	alt := rates{s: base, c: slope*base + b.d + excess}
	return alt, alt.c < maxRate
}

// logLikelihoodRatio is the logarithm of how much likelier the counts are under
// the alternative than under the projection of the alternative on the null.
// Its exponential has expectation at most 1 anywhere in the null, because the
// projection is the null's nearest point in relative entropy and the null is
// convex (Turner, Ly and Grünwald, Generic E-variables for exact sequential
// k-sample tests, 2021).
func (b boundary) logLikelihoodRatio(n counts, alt rates) float64 {
	null := b.project(n, alt)
	return logRatio(n.kc, n.nc, alt.c, null.c) + logRatio(n.ks, n.ns, alt.s, null.s)
}

// logRatio is ln[(p/q)^k ((1-p)/(1-q))^(n-k)] for 0 < p, q < 1.
func logRatio(k, n, p, q float64) float64 {
	l := (n - k) * (math.Log1p(-p) - math.Log1p(-q))
	if k > 0 {
		l += k * math.Log(p/q)
	}
	return l
}

// project is the point of the boundary that minimises
//
//	n_s·KL(alt.s ‖ s) + n_c·KL(alt.c ‖ slope·s + d)
//
// It is convex in s, so its derivative has one root, which lies between the
// points where either term alone is least. Newton's steps that leave the
// bracket are replaced by halving it.
func (b boundary) project(n counts, alt rates) rates {
	lo, hi := alt.s, (alt.c-b.d)/slope
	s := lo + (hi-lo)*n.nc/(n.nc+n.ns)
	const enough = 200 // halving alone needs 60
	for range enough {
		fs, ds := score(n.ns, alt.s, s)
		fc, dc := score(n.nc, alt.c, slope*s+b.d)
		f := fs + slope*fc
		if f < 0 {
			lo = s
		} else {
			hi = s
		}
		next := s - f/(ds+slope*slope*dc)
		if !(next > lo && next < hi) {
			next = lo + (hi-lo)/2
		}
		if math.Abs(next-s) <= 1e-15*s {
			break
		}
		s = next
	}
	return rates{s: s, c: slope*s + b.d}
}

// score is the derivative of n·KL(p ‖ q) in q, n(q-p)/(q(1-q)), and its own
// derivative in q.
func score(n, p, q float64) (value, slopeOf float64) {
	v := q * (1 - q)
	return n * (q - p) / v, n * (v - (q-p)*(1-2*q)) / (v * v)
}
