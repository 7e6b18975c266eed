// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShares(t *testing.T) {
	for name, test := range map[string]struct {
		weights []int32
		want    []int
	}{
		"percents are exact":                          {[]int32{95, 5}, []int{9500, 500}},
		"hundredths of a percent are exact":           {[]int32{9999, 1}, []int{9999, 1}},
		"thirds give the rest to the first":           {[]int32{1, 1, 1}, []int{3334, 3333, 3333}},
		"the largest remainder gets what is left":     {[]int32{2, 1}, []int{6667, 3333}},
		"a weight of 0 gets nothing":                  {[]int32{0, 7, 0}, []int{0, 10000, 0}},
		"no weight at all gives nothing":              {[]int32{0, 0}, []int{0, 0}},
		"no weights, no shares":                       {nil, []int{}},
		"a tiny weight is not starved":                {[]int32{math.MaxInt32, 1}, []int{9999, 1}},
		"many tiny weights are taken off the largest": {[]int32{math.MaxInt32, 1, 1, 1}, []int{9997, 1, 1, 1}},
		"the largest weights do not overflow":         {[]int32{math.MaxInt32, math.MaxInt32}, []int{5000, 5000}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, shares(test.weights)); diff != "" {
				t.Errorf("shares of %v (-want +got):\n%s", test.weights, diff)
			}
		})
	}
}

// TestSharesProperties checks what holds for any weights: the shares are whole,
// they sum to all buckets, zero stays zero, no other is starved, and each is off
// by less than one bucket plus what the starved ones were given.
func TestSharesProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		weights := make([]int32, random.IntN(maxDestinations)+1)
		var total float64
		raised := 0.0
		for i := range weights {
			weights[i] = random.Int32() >> random.IntN(32)
			total += float64(weights[i])
		}
		for _, w := range weights {
			if exact := float64(w) / total * Buckets; w > 0 && exact < 1 {
				raised += 1 - exact
			}
		}
		sum := 0
		for i, n := range shares(weights) {
			sum += n
			exact := float64(weights[i]) / total * Buckets
			if total == 0 {
				exact = 0
			}
			switch {
			case (n > 0) != (weights[i] > 0):
				t.Fatalf("weight %d of %v got %d buckets", weights[i], weights, n)
			case math.Abs(float64(n)-exact) > 1+raised:
				t.Fatalf("weight %d of %v got %d buckets, exact would be %f", weights[i], weights, n, exact)
			}
		}
		if want := Buckets; total > 0 && sum != want {
			t.Fatalf("the shares of %v sum to %d, want %d", weights, sum, want)
		}
	}
}
