// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// minDetectableEffect is the difference in failure rate that the requests so far would
// show in about half of all releases, or 1 if they would show none. The
// logarithm of a bet grows linearly with the canary's failures, so for each
// alternative j there is one failure rate at which its mean reaches what the
// part π_j·w of the stake needs:
//
//	E[ln e_j] = ln(1/α) + ln(1/(π_j·w))
//
// With many more requests of stable than of the canary that is
// n ≈ (ln(1/α) + ln(1/(π_j·w))) / KL(p_c ‖ r·p_s + d).
//
// What a bet loses because stable's rate is only estimated is in neither; the
// allowance for it was found by simulation.
func (c *Config) minDetectableEffect(s *State) float64 {
	const lost = 1.5
	n, least := s.informative, 1.0
	if n.nc == 0 || n.ns == 0 || s.spent == 0 {
		return least
	}
	base := s.metrics[failuresSlot].tracks[0].baseRate()
	null := boundary{slope: countSlope, d: toleranceShare * c.Tolerance}
	n.ks = n.ns * base
	stake := s.spent / c.totalWeight(s)
	for j, excess := range excesses(c.Tolerance) {
		alt := rates{s: base, c: null.at(base) + excess}
		if alt.c >= maxRate {
			break
		}
		at := null.project(n, alt)
		none := logRatio(0, n.nc, alt.c, at.c) + logRatio(n.ks, n.ns, alt.s, at.s)
		each := math.Log(alt.c/at.c) - math.Log1p((at.c-alt.c)/(1-at.c))
		needed := lost - math.Log(c.MaxFalseRollback*stake*prior[j])
		least = min(least, max((needed-none)/each/n.nc-base, 0))
	}
	return least
}

// totalWeight is that of all metrics that are compared.
func (c *Config) totalWeight(s *State) float64 {
	var sum float64
	for i := range s.metrics {
		sum += c.weigh(s, i)
	}
	return sum
}
