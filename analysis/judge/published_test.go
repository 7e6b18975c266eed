// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
)

// published is the sequential two-sample test of Turner, Ly and Grünwald with an
// alternative restricted to a difference of the two shares, as their package
// safestats computes it: one observation of each version per block, a Beta prior
// on a grid. It shares only the projection with the judge.
type published struct {
	difference float64
	share      []float64 // of version a, on the grid
	density    []float64
}

func newPublished(difference, beta float64, grid int) *published {
	p := &published{difference: difference}
	for i := range grid {
		// From 1/grid to 1-1/grid.
		x := 1/float64(grid) + (1-2/float64(grid))*float64(i)/float64(grid-1)
		p.share = append(p.share, x*(1-difference))
		p.density = append(p.density, math.Pow(x*(1-x), beta-1))
	}
	return p
}

// block returns the e-value of one block and learns from it.
func (p *published) block(a, b float64) float64 {
	var mean, total float64
	for i, x := range p.share {
		mean += x * p.density[i]
		total += p.density[i]
	}
	mean /= total
	equal := boundary{slope: 1}
	e := math.Exp(equal.logLikelihoodRatio(counts{ns: 1, ks: a, nc: 1, kc: b}, rates{s: mean, c: mean + p.difference}))
	for i, x := range p.share {
		p.density[i] *= math.Pow(x, a) * math.Pow(1-x, 1-a) * math.Pow(x+p.difference, b) * math.Pow(1-x-p.difference, 1-b)
	}
	return e
}

func TestThePublishedTwoSampleTestGivesItsKnownAnswers(t *testing.T) {
	p := newPublished(.25, .18, 101)
	a, b := []float64{0, 1, 0, 1}, []float64{1, 1, 0, 0}
	e := 1.0
	for i, want := range []float64{1.5625, 1.46484375, 1.1474712811576, .645452595651148} {
		e *= p.block(a[i], b[i])
		if math.Abs(e-want) > 1e-12 {
			t.Errorf("after block %d: %.15g, want %.15g", i+1, e, want)
		}
	}
}
