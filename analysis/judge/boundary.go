// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// boundary is the straight edge c = slope·s + d of a null hypothesis, where s
// and c are the shares of bad events of stable and canary. The null is one side
// of it and thereby convex; a curved or broken edge such as max(r·s, s+d) would
// not bound a convex set on both sides, and would void the proof.
type boundary struct{ slope, d float64 }

// at is the share of bad events of a canary on the edge.
func (b boundary) at(s float64) float64 { return b.slope*s + b.d }

// rates is a point: the share of bad events of both versions.
type rates struct{ s, c float64 }

// counts are the events n and bad events k of both variants in one window. They
// are not whole numbers where counts are tempered.
type counts struct{ nc, kc, ns, ks float64 }

// logLikelihoodRatio is the logarithm of how much likelier the counts are under
// the alternative than under the projection of the alternative on the edge.
// Its exponential has expectation at most 1 anywhere on the other side of the
// edge, because the projection is the null's nearest point in relative entropy
// and the null is convex (Turner, Ly and Grünwald, Generic E-variables for
// exact sequential k-sample tests, 2021).
func (b boundary) logLikelihoodRatio(n counts, alt rates) float64 {
	null := b.project(n, alt)
	return logRatio(n.kc, n.nc, alt.c, null.c) + logRatio(n.ks, n.ns, alt.s, null.s)
}

// logRatio is ln[(p/q)^k ((1-p)/(1-q))^(n-k)] for 0 < p, q < 1.
func logRatio(k, n, p, q float64) float64 {
	l := (n - k) * math.Log1p((q-p)/(1-q))
	if k > 0 {
		l += k * math.Log(p/q)
	}
	return l
}

// project is the point of the edge that minimises
//
//	n_s·KL(alt.s ‖ s) + n_c·KL(alt.c ‖ slope·s + d)
//
// It is convex in s, so its derivative has one root, which lies between the
// points where either term alone is least. The derivative's numerator is a
// cubic; Newton's steps that leave the bracket are replaced by halving it.
func (b boundary) project(n counts, alt rates) rates {
	// On the side of the canary the bracket ends where the edge is as high as the
	// alternative. That may be below 0, where no share is.
	lo, hi := alt.s, (alt.c-b.d)/b.slope
	if lo > hi {
		lo, hi = max(hi, 0), lo
	}
	total := n.nc + n.ns
	ns, nc := n.ns/total, n.nc/total
	s := lo + (hi-lo)*b.start(ns, nc, alt)
	const enough = 200 // halving alone needs 60
	for range enough {
		c := b.at(s)
		vs, vc := s*(1-s), c*(1-c)
		f := ns*(s-alt.s)*vc + b.slope*nc*(c-alt.c)*vs
		slopeOf := ns*(vc+(s-alt.s)*b.slope*(1-2*c)) + b.slope*nc*(b.slope*vs+(c-alt.c)*(1-2*s))
		if f < 0 {
			lo = s
		} else {
			hi = s
		}
		next := s - f/slopeOf
		if !(next >= lo && next <= hi && next > 0) {
			next = lo + (hi-lo)/2
		}
		step := math.Abs(next - s)
		s = next
		if step <= 1e-9*s { // Newton squares the error: the next step would be below rounding
			break
		}
	}
	return rates{s: s, c: b.at(s)}
}

// start is where in the bracket to begin, from 0 to 1: the mean of both ends,
// each weighted by how sharply its term is bent.
func (b boundary) start(ns, nc float64, alt rates) float64 {
	bentS := ns / (alt.s * (1 - alt.s))
	bentC := b.slope * b.slope * nc / (alt.c * (1 - alt.c))
	towardsCanary := bentC / (bentS + bentC)
	if alt.c < b.at(alt.s) {
		return 1 - towardsCanary
	}
	return towardsCanary
}
