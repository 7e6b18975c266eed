// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLooksThatFailGetRare(t *testing.T) {
	var got []int
	for failed := range 8 {
		got = append(got, pauseAfter(failed))
	}
	if diff := cmp.Diff([]int{1, 1, 2, 4, 8, 16, 16, 16}, got); diff != "" {
		t.Error(diff)
	}
}
