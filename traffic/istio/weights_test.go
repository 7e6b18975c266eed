// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"math"
	"testing"

	"github.com/serin-dev/serin/traffic/routes"
)

func TestWeightsThatIstioDoesNotTakeAreRefused(t *testing.T) {
	one := func(weight int64) routes.Share { return routes.Share{Weight: weight} }
	for name, test := range map[string]struct {
		shares []routes.Share
		want   bool
	}{
		"the largest weight":          {[]routes.Share{one(math.MaxInt32), one(1)}, true},
		"one more than that":          {[]routes.Share{one(math.MaxInt32 + 1), one(1)}, false},
		"the largest sum":             {[]routes.Share{one(math.MaxInt32), one(math.MaxInt32), one(1)}, true},
		"one more than the sum":       {[]routes.Share{one(math.MaxInt32), one(math.MaxInt32), one(2)}, false},
		"weights that are all 0 stay": {[]routes.Share{one(0), one(0)}, true},
		"a common factor is removed":  {[]routes.Share{one(4 * math.MaxInt32), one(4)}, true},
	} {
		if _, err := checkWeights(routes.Weights(test.shares)); (err == nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
