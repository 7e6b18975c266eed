// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"math"
	"strconv"
)

// Weights are those that the ramp holds, in percent: each is above the one before by the
// points or by the factor, and by at least one point. The error names the field and the
// fix: it can only come from an object that the schema did not check.
func (r *Ramp) Weights() ([]int32, error) {
	factor := 1.0
	if r.Times != "" {
		f, err := strconv.ParseFloat(r.Times, 64)
		if err != nil || !(f >= 1 && f < 100) {
			return nil, fmt.Errorf("spec.strategy.ramp.times: %q is not a factor from 1 to 99.99; write a number such as 2 or 1.5", r.Times)
		}
		factor = f
	}
	by := int32(1)
	if r.By != nil {
		by = min(max(*r.By, 1), 100)
	}
	var weights []int32
	for w := max(r.From, 1); ; {
		w = min(w, r.To, 100)
		weights = append(weights, w)
		if w >= min(r.To, 100) {
			return weights, nil
		}
		w = max(w+by, int32(math.Floor(float64(w)*factor)))
	}
}
