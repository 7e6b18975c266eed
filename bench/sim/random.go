// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"hash/fnv"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// random draws the numbers of one run.
type random struct{ source rand.Source }

// newRandom is the source of one run: the same for the same seed, name and
// number, and unrelated to all others.
func newRandom(seed uint64, name string, run int) random {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))                            // a hash never fails
	return random{rand.NewPCG(seed^h.Sum64(), uint64(run))} //nolint:gosec // a run is never negative
}

// count is how many requests come when that many are expected: requests come
// independently of each other.
func (r random) count(expected float64) int64 {
	if expected <= 0 {
		return 0
	}
	return int64(distuv.Poisson{Lambda: expected, Src: r.source}.Rand())
}

// failures is how many of n requests fail, each with probability p.
func (r random) failures(n int64, p float64) int64 {
	switch {
	case n <= 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	}
	return int64(distuv.Binomial{N: float64(n), P: p, Src: r.source}.Rand())
}

// share is a random failure rate with mean p, by which any two requests are
// correlated with each other by rho: a beta distribution.
func (r random) share(p, rho float64) float64 {
	if rho <= 0 || p <= 0 || p >= 1 {
		return p
	}
	size := 1/rho - 1
	return distuv.Beta{Alpha: p * size, Beta: (1 - p) * size, Src: r.source}.Rand()
}
