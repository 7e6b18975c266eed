// SPDX-License-Identifier: Apache-2.0

package routes

import "math/big"

// Share is a destination of a route with its weight, and the weights of those that take
// its place. Without parts it stays as it is. The sum of parts must be above 0.
type Share struct {
	Weight int64
	Parts  []int64
}

// Weights gives every destination the smallest whole weights with the same shares:
// those that stay keep their share exactly, and the parts of the others have theirs of its
// share. The weights have no common factor. They are all 0 where all weights are.
//
// With the weight w and the parts p of the sum P, a part gets w·p/P. The least common
// multiple of the sums makes all of them whole.
func Weights(shares []Share) [][]*big.Int {
	multiple, divisor := big.NewInt(1), new(big.Int)
	for _, s := range shares {
		multiple.Div(new(big.Int).Mul(multiple, s.sum()), new(big.Int).GCD(nil, nil, multiple, s.sum()))
	}
	weights := make([][]*big.Int, len(shares))
	for i, s := range shares {
		each := new(big.Int).Mul(big.NewInt(s.Weight), multiple)
		each.Quo(each, s.sum())
		for _, p := range s.parts() {
			weight := new(big.Int).Mul(each, big.NewInt(p))
			divisor.GCD(nil, nil, divisor, weight)
			weights[i] = append(weights[i], weight)
		}
	}
	if divisor.Sign() == 0 {
		return weights // all of them are 0
	}
	for _, list := range weights {
		for _, w := range list {
			w.Quo(w, divisor)
		}
	}
	return weights
}

// parts has the destination itself as the one part of a share that stays.
func (s Share) parts() []int64 {
	if len(s.Parts) == 0 {
		return []int64{1}
	}
	return s.Parts
}

func (s Share) sum() *big.Int {
	total := new(big.Int)
	for _, p := range s.parts() {
		total.Add(total, big.NewInt(p))
	}
	return total
}
