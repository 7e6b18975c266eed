// SPDX-License-Identifier: Apache-2.0

package judgement

import "math"

// implausible is the probability below which a count is taken for a wrong share: a run of the
// tests compares some dozens of counts, so that one in ten thousand runs fails by chance.
const implausible = 1e-6

// Plausible tells whether part of all is what independent draws with a share give. It adds up
// the binomial distribution from the count outwards, and doubles that for both sides.
func Plausible(part, all int64, share float64) bool {
	switch {
	case share <= 0:
		return part == 0
	case share >= 1:
		return part == all
	}
	below, above := 0.0, 0.0
	for k := range all + 1 {
		p := math.Exp(logBinomial(all, k) + float64(k)*math.Log(share) + float64(all-k)*math.Log1p(-share))
		if k <= part {
			below += p
		}
		if k >= part {
			above += p
		}
	}
	return 2*min(below, above) >= implausible
}

// logBinomial is the logarithm of the number of ways to choose k of n.
func logBinomial(n, k int64) float64 { return logFactorial(n) - logFactorial(k) - logFactorial(n-k) }

func logFactorial(n int64) float64 {
	value, _ := math.Lgamma(float64(n) + 1)
	return value
}
