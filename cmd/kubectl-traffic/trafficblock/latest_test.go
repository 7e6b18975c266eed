// SPDX-License-Identifier: Apache-2.0

package trafficblock_test

import (
	"testing"
	"time"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficblock"
)

func TestNewest(t *testing.T) {
	early := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	late := early.Add(time.Hour)
	tests := []struct {
		name       string
		candidates []trafficblock.Candidate
		want       string
		fails      bool
	}{
		{name: "the newest that is ready", candidates: []trafficblock.Candidate{{"a", 1, late}, {"b", 1, early}}, want: "a"},
		{name: "a newer one without ready endpoints is passed over", candidates: []trafficblock.Candidate{{"a", 0, late}, {"b", 2, early}}, want: "b"},
		{name: "none is ready", candidates: []trafficblock.Candidate{{"a", 0, late}}},
		{name: "two of the same age", candidates: []trafficblock.Candidate{{"a", 1, late}, {"b", 1, late}}, fails: true},
		{name: "two of the same age before a newer one", candidates: []trafficblock.Candidate{{"a", 1, early}, {"b", 1, early}, {"c", 1, late}}, want: "c"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := trafficblock.Newest(test.candidates)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
