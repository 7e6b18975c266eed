// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"testing"
)

// null is a null hypothesis with the alternatives that are bet on against it.
type null struct {
	name  string
	edges []boundary
	// alternatives for a base rate.
	alternatives func(b boundary, base float64) []rates
	// truth is a point of the null: on its edge at inside 1, far from it at 0.
	truth func(b boundary, s, inside float64) rates
}

func worse(b boundary, base float64) []rates {
	var alts []rates
	for _, tolerance := range []float64{.0002, .005, .3} {
		for _, a := range excesses(tolerance) {
			if c := b.at(base) + a; c < maxRate {
				alts = append(alts, rates{s: base, c: c})
			}
		}
	}
	return alts
}

func asGood(b boundary, base float64) []rates {
	var alts []rates
	for _, h := range hope {
		if edge := b.at(base); edge < maxRate {
			alts = append(alts, rates{s: base, c: base + h*(edge-base)})
		}
	}
	return alts
}

func below(b boundary, s, inside float64) rates { return rates{s: s, c: inside * min(1, b.at(s))} }
func above(b boundary, s, inside float64) rates {
	edge := min(1, b.at(s))
	return rates{s: s, c: 1 - inside*(1-edge)}
}

var allNulls = []null{
	{"rollback for failures", []boundary{{countSlope, .0002}, {countSlope, .001}, {countSlope, .1}, {countSlope, .251}}, worse, below},
	{"rollback for latency", []boundary{{edgeSlope, edgeMargin}, {edgeSlope, edgeMargin + .25}}, worse, below},
	{"promotion by failures", []boundary{{1, .0005}, {1, .005}, {1, .5}}, asGood, above},
	{"promotion by latency", []boundary{{edgeSlope, edgeTolerance}}, asGood, above},
}

// The guarantee rests on one inequality: wherever in the null the truth is, a
// bet is worth at most what it cost. Here it is checked by summing over every
// possible outcome.
func TestABetOnAnyAlternativeIsWorthAtMostItsStakeEverywhereInTheNull(t *testing.T) {
	variants := [][2]int{{1, 1}, {1, 8}, {8, 1}, {3, 5}, {12, 4}, {2, 40}, {20, 20}}
	for _, h := range allNulls {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			var worst float64
			for _, n := range variants {
				groups := [2][]int{ones(n[0]), ones(n[1])}
				worst = max(worst, h.worstExpectation(t, groups, 0, independent))
			}
			t.Logf("largest expectation - 1: %.3g", worst-1)
			if worst < 1-1e-9 {
				t.Errorf("largest expectation = %v, want 1 at the projection: otherwise the bets are weaker than they could be", worst)
			}
		})
	}
}

// With counts divided by φ the same holds for requests that fail in groups of
// at most φ, whatever happens inside of a group.
func TestATemperedBetIsWorthAtMostItsStakeWhenRequestsComeInGroups(t *testing.T) {
	for _, h := range allNulls {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			var worst float64
			for _, groups := range [][2][]int{
				{{4, 4, 4}, {4, 4, 4, 4, 4}},
				{{4}, {4}},
				{{4, 3, 1, 1}, {2, 2, 4, 1, 3, 4}},
				{{2, 2, 2, 2}, {1, 1, 1, 1, 4, 4, 4, 4}},
			} {
				for _, together := range []float64{0, .5, 1} {
					worst = max(worst, h.worstExpectation(t, groups, together, tempering{floor: 4}))
				}
			}
			t.Logf("largest expectation - 1: %.3g", worst-1)
			if worst < .99 {
				t.Errorf("largest expectation = %v, want nearly 1: tempering by the size of the groups is not too much", worst)
			}
		})
	}
}

func TestWithoutTemperingGroupsWouldVoidTheGuarantee(t *testing.T) {
	h := allNulls[0]
	b := h.edges[1]
	groups := [2][]int{{8, 8, 8}, {8, 8, 8}}
	e := newOutcomes(groups, independent, b, rates{s: .01, c: b.at(.01) + .04}).expectation(groups, 1, rates{s: .01, c: b.at(.01)})
	if e < 2 {
		t.Errorf("expectation = %v, want far more than 1: the other tests are to show that tempering is needed", e)
	}
}

func ones(n int) []int {
	groups := make([]int, n)
	for i := range groups {
		groups[i] = 1
	}
	return groups
}

// worstExpectation is the largest over base rates, alternatives and truths.
func (h null) worstExpectation(t *testing.T, groups [2][]int, together float64, by tempering) float64 {
	t.Helper()
	var worst float64
	for _, b := range h.edges {
		for _, base := range []float64{1e-5, .001, .01, .1, .4, .7} {
			for _, alt := range h.alternatives(b, base) {
				values := newOutcomes(groups, by, b, alt)
				shares := []float64{0, 1e-4, .001, .01, .05, .2, .5, .8, .9, 1, values.projected.s}
				for _, s := range shares {
					for _, inside := range []float64{1, .99, .5, 0} {
						truth := h.truth(b, s, inside)
						e := values.expectation(groups, together, truth)
						if b.at(s) > 1 && h.truth(b, 0, 0).c == 1 {
							continue // no canary is that much worse than such a stable version
						}
						if e > 1+1e-9 {
							t.Errorf("groups %v, %v together, %+v, alternative %+v: expectation at %+v = %v, want at most 1", groups, together, b, alt, truth, e)
						}
						worst = max(worst, e)
					}
				}
			}
		}
	}
	return worst
}

// outcomes holds the value of a bet for every number of failures.
type outcomes struct {
	value     [][]float64
	projected rates
}

func newOutcomes(groups [2][]int, by tempering, b boundary, alt rates) outcomes {
	nc, ns := sum(groups[0]), sum(groups[1])
	both := temperings{stable: by, canary: by} // favour does what against does then
	o := outcomes{projected: b.project(both.favour(counts{nc: float64(nc), ns: float64(ns)}), alt)}
	for kc := range nc + 1 {
		var row []float64
		for ks := range ns + 1 {
			n := both.favour(counts{nc: float64(nc), kc: float64(kc), ns: float64(ns), ks: float64(ks)})
			row = append(row, math.Exp(b.logLikelihoodRatio(n, alt)))
		}
		o.value = append(o.value, row)
	}
	return o
}

func (o outcomes) expectation(groups [2][]int, together float64, truth rates) float64 {
	canary, stable := distribution(groups[0], together, truth.c), distribution(groups[1], together, truth.s)
	var e float64
	for kc := range canary {
		for ks := range stable {
			e += canary[kc] * stable[ks] * o.value[kc][ks]
		}
	}
	return e
}

// distribution is that of the number of failures in independent groups. With the
// probability together all requests of a group share one fate.
func distribution(groups []int, together, p float64) []float64 {
	all := []float64{1}
	for _, size := range groups {
		next := make([]float64, len(all)+size)
		for k := range size + 1 {
			q := (1 - together) * binomial(size, k, p)
			switch k {
			case 0:
				q += together * (1 - p)
			case size:
				q += together * p
			}
			for i, r := range all {
				next[i+k] += q * r
			}
		}
		all = next
	}
	return all
}

func sum(xs []int) int {
	n := 0
	for _, x := range xs {
		n += x
	}
	return n
}

// binomial is the probability of k in n; exact at p = 0 and p = 1.
func binomial(n, k int, p float64) float64 {
	choose := 1.0
	for i := range k {
		choose *= float64(n-i) / float64(i+1)
	}
	return choose * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n-k))
}

func TestTheProjectionIsTheNearestPointOfTheEdge(t *testing.T) {
	away := func(n counts, alt, q rates) float64 {
		return n.ns*divergence(alt.s, q.s) + n.nc*divergence(alt.c, q.c)
	}
	for _, h := range allNulls {
		for _, n := range []counts{{nc: 1, ns: 1}, {nc: 5, ns: 5000}, {nc: 5000, ns: 5}, {nc: 1e6, ns: 1e7}, {nc: 1, ns: 1e9}, {nc: .01, ns: .2}} {
			for _, base := range []float64{1e-9, 1e-4, .01, .3, .7} {
				b := h.edges[len(h.edges)-1]
				for _, alt := range h.alternatives(b, base) {
					t.Run(fmt.Sprintf("%s %+v %+v", h.name, n, alt), func(t *testing.T) {
						at := b.project(n, alt)
						if !(at.s > 0 && at.s < 1 && at.c > 0 && at.c < 1) {
							t.Fatalf("projection %+v is no pair of shares", at)
						}
						least, rounding := away(n, alt, at), 1e-15*(n.nc+n.ns)
						for _, step := range []float64{-1e-3, -1e-6, 1e-6, 1e-3} {
							s := at.s * (1 + step)
							if other := (rates{s: s, c: b.at(s)}); other.c < 1 && away(n, alt, other) < least-rounding {
								t.Errorf("%+v is nearer than the projection %+v", other, at)
							}
						}
					})
				}
			}
		}
	}
}

// divergence is KL(p ‖ q) of two coins.
func divergence(p, q float64) float64 {
	return p*math.Log(p/q) + (1-p)*math.Log1p((q-p)/(1-q))
}
