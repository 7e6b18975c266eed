// SPDX-License-Identifier: Apache-2.0

package routes_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/serin-dev/serin/traffic/routes"
)

// Every destination has exactly the share that the route and the split say together.
func TestSharesAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		shares := make([]routes.Share, 1+r.IntN(4))
		var total int64
		for i := range shares {
			shares[i].Weight = int64(r.IntN(101))
			total += shares[i].Weight
			for range r.IntN(4) {
				shares[i].Parts = append(shares[i].Parts, int64(1+r.IntN(10)))
			}
		}
		if total == 0 {
			continue
		}
		weights := routes.Weights(shares)
		sumOf := new(big.Int)
		for _, list := range weights {
			for _, w := range list {
				sumOf.Add(sumOf, w)
			}
		}
		for i, s := range shares {
			parts := s.Parts
			if len(parts) == 0 {
				parts = []int64{1}
			}
			all := int64(0)
			for _, p := range parts {
				all += p
			}
			for j, p := range parts {
				want := new(big.Rat).Mul(big.NewRat(s.Weight, total), big.NewRat(p, all))
				if got := new(big.Rat).SetFrac(weights[i][j], sumOf); got.Cmp(want) != 0 {
					t.Fatalf("%+v: share %s, want %s", shares, got, want)
				}
			}
		}
	}
}

func TestWeightsAreTheSmallestWholeOnes(t *testing.T) {
	for want, shares := range map[string][]routes.Share{
		"[[2] [1]]":        {{Weight: 4}, {Weight: 2}},
		"[[9 1]]":          {{Weight: 7, Parts: []int64{9, 1}}},
		"[[27 3] [20 10]]": {{Weight: 1, Parts: []int64{9, 1}}, {Weight: 1, Parts: []int64{2, 1}}},
		"[[5 1] [6]]":      {{Weight: 3, Parts: []int64{5, 1}}, {Weight: 3}},
		"[[0] [0]]":        {{}, {}},
		"[[0 0] [1]]":      {{Parts: []int64{9, 1}}, {Weight: 5}},
	} {
		if got := fmt.Sprint(routes.Weights(shares)); got != want {
			t.Errorf("%+v: weights %s, want %s", shares, got, want)
		}
	}
}
