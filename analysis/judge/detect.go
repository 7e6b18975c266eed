// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// detectable is the difference in failure rate that the requests so far would
// have shown, or 1 if they would have shown none. On average a bet on the right
// alternative j gains KL(p_c ‖ r·p_s + d) for each request, and it takes
//
//	n ≈ (ln(1/α) + ln(1/(π_j·w))) / KL(p_c ‖ r·p_s + d)
//
// to gain 1/α from the part π_j·w of the stake. Requests of both versions count:
// where the canary has as many as stable, n is half of its own.
func (c *Config) detectable(s *State) float64 {
	base := s.metrics[failuresSlot].tracks[0].baseRate()
	null := boundary{slope: countSlope, d: toleranceShare * c.Tolerance}.at(base)
	weight := 1 / c.totalWeight(s)
	found := func(effect float64) bool {
		gain := s.informative * divergence(base+effect, null)
		return gain >= -math.Log(c.MaxFalseRollback)-math.Log(weight*s.spent*priorOf(base+effect-null))
	}
	lo, hi := null-base, maxRate-base
	if s.informative == 0 || s.spent == 0 || hi <= lo || !found(hi) {
		return 1
	}
	const halvings = 20 // to a millionth
	for range halvings {
		if mid := (lo + hi) / 2; found(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

func (c *Config) totalWeight(s *State) float64 {
	var sum float64
	for i := range s.metrics {
		sum += c.weigh(s, i)
	}
	return sum
}

// priorOf is the prior of the largest alternative that is not beyond the excess:
// a bet on less than the truth still wins.
func priorOf(x float64) float64 {
	for j := len(excess) - 1; j > 0; j-- {
		if x >= excess[j] {
			return prior[j]
		}
	}
	return prior[0]
}

// divergence is KL(p ‖ q) of two coins, for 0 < p, q < 1.
func divergence(p, q float64) float64 {
	return p*math.Log(p/q) + (1-p)*math.Log1p((q-p)/(1-q))
}
