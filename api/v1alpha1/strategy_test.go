// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWeightsOfARamp(t *testing.T) {
	ten := int32(10)
	for _, test := range []struct {
		name string
		ramp Ramp
		want []int32 // nil when it is refused
	}{
		{"by points", Ramp{From: 5, To: 30, By: &ten}, []int32{5, 15, 25, 30}},
		{"by a factor", Ramp{From: 1, To: 50, Times: "3"}, []int32{1, 3, 9, 27, 50}},
		{"by at least one point", Ramp{From: 1, To: 4, Times: "1.1"}, []int32{1, 2, 3, 4}},
		{"one weight", Ramp{From: 50, To: 50}, []int32{50}},
		{"a start above the end", Ramp{From: 60, To: 50}, []int32{50}},
		{"no factor", Ramp{From: 1, To: 50, Times: "x"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.ramp.Weights()
			if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != (test.want == nil) {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
}
