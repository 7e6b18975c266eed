// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"math"
	"testing"
)

func TestWeightsThatIstioDoesNotTakeAreRefused(t *testing.T) {
	one := func(weight int64) share { return share{weight: weight} }
	for name, test := range map[string]struct {
		shares []share
		want   bool
	}{
		"the largest weight":           {[]share{one(math.MaxInt32), one(1)}, true},
		"one more than that":           {[]share{one(math.MaxInt32 + 1), one(1)}, false},
		"the largest sum":              {[]share{one(math.MaxInt32), one(math.MaxInt32), one(1)}, true},
		"one more than the sum":        {[]share{one(math.MaxInt32), one(math.MaxInt32), one(2)}, false},
		"weights that are all 0 stay":  {[]share{one(0), one(0)}, true},
		"a common factor is taken out": {[]share{one(4 * math.MaxInt32), one(4)}, true},
	} {
		if _, err := scale(test.shares); (err == nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
