// SPDX-License-Identifier: Apache-2.0

package analysis_test

import (
	"testing"

	"github.com/serin-dev/serin/analysis"
)

func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status []int
		want   analysis.Outcome
	}{
		{"answers below 500 are the version's success", []int{100, 101, 200, 204, 301, 304, 400, 401, 404, 429, 444, 498}, analysis.Success},
		{"a client that left says nothing", []int{499, 0}, analysis.Ignored},
		{"no status says nothing", []int{-1, 9, 99}, analysis.Ignored},
		{"answers of 500 and above are failures", []int{500, 502, 503, 504, 599}, analysis.Failure},
		{"a status that does not exist is a failure", []int{600, 999}, analysis.Failure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, status := range tt.status {
				if got := analysis.Classify(status); got != tt.want {
					t.Errorf("Classify(%d) = %v, want %v", status, got, tt.want)
				}
			}
		})
	}
}
