// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"testing"
)

// The guarantee rests on one inequality: wherever in the null the truth is, a
// bet is worth at most what it cost. Here it is checked by summing over every
// possible outcome.
func TestABetOnAnyAlternativeIsWorthAtMostItsStakeEverywhereInTheNull(t *testing.T) {
	var worst float64
	for _, arms := range [][2]int{{1, 1}, {1, 8}, {8, 1}, {3, 5}, {12, 4}, {2, 40}, {20, 20}} {
		for _, base := range []float64{1e-5, .001, .01, .1, .4, .8} {
			for _, d := range []float64{.0002, .001, .1, .251} {
				for _, a := range excess {
					worst = max(worst, worstExpectation(t, arms[0], arms[1], boundary{slope: countSlope, d: d}, base, a))
				}
			}
		}
	}
	t.Logf("largest expectation - 1: %.3g", worst-1)
	if worst < 1-1e-9 {
		t.Errorf("largest expectation = %v, want 1 at the projection: otherwise the bets are weaker than they could be", worst)
	}
}

func worstExpectation(t *testing.T, nc, ns int, null boundary, base, a float64) float64 {
	t.Helper()
	alt := rates{s: base, c: null.at(base) + a}
	if alt.c >= maxRate {
		return 0
	}
	table := newBetTable(nc, ns, null, alt)
	projected := null.project(counts{nc: float64(nc), ns: float64(ns)}, alt)
	if e := table.expectation(projected); math.Abs(e-1) > 1e-9 {
		t.Errorf("n=(%d,%d) base=%v d=%v a=%v: expectation at the projection = %v, want 1", nc, ns, base, null.d, a, e)
	}
	var worst float64
	for _, s := range []float64{0, 1e-4, .001, .01, .05, .2, .5, .8, .9, 1, projected.s} {
		for _, inside := range []float64{1, .99, .5, 0} {
			truth := rates{s: s, c: inside * min(1, null.at(s))}
			e := table.expectation(truth)
			if e > 1+1e-9 {
				t.Errorf("n=(%d,%d) base=%v d=%v a=%v: expectation at %+v = %v, want at most 1", nc, ns, base, null.d, a, truth, e)
			}
			worst = max(worst, e)
		}
	}
	return worst
}

// betTable holds the value of a bet for every outcome.
type betTable [][]float64

func newBetTable(nc, ns int, null boundary, alt rates) betTable {
	table := make(betTable, nc+1)
	for kc := range table {
		for ks := range ns + 1 {
			n := counts{nc: float64(nc), kc: float64(kc), ns: float64(ns), ks: float64(ks)}
			table[kc] = append(table[kc], math.Exp(null.logLikelihoodRatio(n, alt)))
		}
	}
	return table
}

func (b betTable) expectation(truth rates) float64 {
	nc, ns := len(b)-1, len(b[0])-1
	var sum float64
	for kc := range b {
		for ks := range b[kc] {
			sum += binomial(nc, kc, truth.c) * binomial(ns, ks, truth.s) * b[kc][ks]
		}
	}
	return sum
}

// binomial is the probability of k in n; exact at p = 0 and p = 1.
func binomial(n, k int, p float64) float64 {
	choose := 1.0
	for i := range k {
		choose *= float64(n-i) / float64(i+1)
	}
	return choose * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n-k))
}

func TestTheProjectionIsTheNearestPointOfTheBoundary(t *testing.T) {
	divergence := func(n counts, alt, q rates) float64 {
		kl := func(p, q float64) float64 { return p*math.Log(p/q) + (1-p)*math.Log((1-p)/(1-q)) }
		return n.ns*kl(alt.s, q.s) + n.nc*kl(alt.c, q.c)
	}
	for _, n := range []counts{{nc: 1, ns: 1}, {nc: 5, ns: 5000}, {nc: 5000, ns: 5}, {nc: 1e6, ns: 1e7}, {nc: 1, ns: 1e9}} {
		for _, base := range []float64{1e-9, 1e-4, .01, .3, .89} {
			for _, a := range excess {
				null := boundary{slope: countSlope, d: .001}
				alt := rates{s: base, c: null.at(base) + a}
				if alt.c >= maxRate {
					continue
				}
				t.Run(fmt.Sprintf("%+v base %v excess %v", n, base, a), func(t *testing.T) {
					at := null.project(n, alt)
					if at.s < alt.s || at.c > alt.c {
						t.Fatalf("projection %+v is not between the alternative %+v and the null", at, alt)
					}
					least, rounding := divergence(n, alt, at), 1e-15*(n.nc+n.ns)
					for _, step := range []float64{-1e-3, -1e-6, 1e-6, 1e-3} {
						s := at.s * (1 + step)
						other := rates{s: s, c: null.at(s)}
						if d := divergence(n, alt, other); d < least-rounding {
							t.Errorf("divergence at %+v = %v, less than %v at the projection %+v", other, d, least, at)
						}
					}
				})
			}
		}
	}
}
