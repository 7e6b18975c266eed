// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"math"
	"math/big"
)

// Bounds of Istio and of its proxies: a weight is an int32, and the sum of those of
// a route fits in 32 bits.
var (
	maxWeight = big.NewInt(math.MaxInt32)
	maxSum    = big.NewInt(math.MaxUint32)
)

// share is a destination of a route with its weight, and the weights of those that
// take its place. Without parts it stays as it is.
type share struct {
	weight int64
	parts  []int64
}

// scale gives every destination of a route a whole weight, so that those that stay
// keep their share exactly, and the parts of the others have theirs of its share.
// The weights have no common factor. Each of the parts' sums must be above 0.
//
// With the weight w and the parts p of the sum P, a part gets w·p/P. The least
// common multiple of the sums makes all of them whole.
func scale(shares []share) ([][]int64, error) {
	multiple := big.NewInt(1)
	for _, s := range shares {
		if len(s.parts) > 0 {
			multiple = lcm(multiple, sum(s.parts))
		}
	}
	weights := make([][]*big.Int, len(shares))
	for i, s := range shares {
		whole := new(big.Int).Mul(big.NewInt(s.weight), multiple)
		if len(s.parts) == 0 {
			weights[i] = []*big.Int{whole}
			continue
		}
		whole.Quo(whole, sum(s.parts))
		for _, p := range s.parts {
			weights[i] = append(weights[i], new(big.Int).Mul(whole, big.NewInt(p)))
		}
	}
	return reduce(weights)
}

// reduce divides the weights by their greatest common divisor.
func reduce(weights [][]*big.Int) ([][]int64, error) {
	divisor, total := new(big.Int), new(big.Int)
	for _, list := range weights {
		for _, w := range list {
			divisor.GCD(nil, nil, divisor, w)
		}
	}
	if divisor.Sign() == 0 {
		divisor.SetInt64(1) // all of them are 0
	}
	out := make([][]int64, len(weights))
	for i, list := range weights {
		for _, w := range list {
			w = new(big.Int).Quo(w, divisor)
			total.Add(total, w)
			if w.Cmp(maxWeight) > 0 || total.Cmp(maxSum) > 0 {
				return nil, fmt.Errorf("the weights of the route and of the split together need a weight of %s, more than Istio takes; "+
					"choose weights with a common factor", w)
			}
			out[i] = append(out[i], w.Int64())
		}
	}
	return out, nil
}

func sum(list []int64) *big.Int {
	total := new(big.Int)
	for _, n := range list {
		total.Add(total, big.NewInt(n))
	}
	return total
}

func lcm(a, b *big.Int) *big.Int {
	divisor := new(big.Int).GCD(nil, nil, a, b)
	return new(big.Int).Mul(a, new(big.Int).Quo(b, divisor))
}
