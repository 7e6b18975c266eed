// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"math"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

const (
	// band is how many standard deviations the middle 99.9 % of a binomial
	// distribution reach to either side, as long as it is close to a normal one.
	band = 3.2905
	// enough is how many requests make it close, at the weights of the test.
	enough = 1000
)

// window is the traffic of one stretch in which one weight was in effect all along.
type window struct {
	canary      string
	weight      *v1alpha1.WeightStatus
	first, last generator.Report
	// unproven is the latest report; whether the weight was still in effect at its
	// time, the next look tells.
	unproven *generator.Report
}

// shares are the windows of a test.
type shares struct {
	t       loud
	windows []window
}

// add looks at the traffic. The status has been read before: a report counts only
// when the status before it and the one after it say the same.
func (s *shares) add(canary string, weight *v1alpha1.WeightStatus, report func() generator.Report) {
	if weight == nil || weight.Since == nil {
		return
	}
	now := report()
	if len(s.windows) > 0 {
		w := &s.windows[len(s.windows)-1]
		if w.canary == canary && w.weight.Requested == weight.Requested && w.weight.Since.Equal(weight.Since) {
			w.last, w.unproven = *w.unproven, &now
			return
		}
	}
	s.windows = append(s.windows, window{canary: canary, weight: weight, first: now, last: now, unproven: &now})
}

// requests of a window: those of the canary, and all that a version answered.
func (w window) requests() (canary, all int64) {
	for _, version := range w.last.Versions {
		all += version.Requests - w.first.Version(version.Version).Requests
	}
	return w.last.Version(w.canary).Requests - w.first.Version(w.canary).Requests, all
}

// require fails the test when a share was not the weight, by more than chance
// explains, or when one of the weights was not measured.
func (s *shares) require(weights ...int32) {
	s.t.Helper()
	measured := map[int32]bool{}
	for _, w := range s.windows {
		canary, all := w.requests()
		if all < enough {
			continue
		}
		measured[w.weight.Requested] = true
		s.t.Logf("at weight %d %s answered %d of %d requests", w.weight.Requested, w.canary, canary, all)
		if !inBand(canary, all, float64(w.weight.Requested)/100) {
			s.t.Errorf("at weight %d %s answered %d of %d requests", w.weight.Requested, w.canary, canary, all)
		}
	}
	for _, weight := range weights {
		if !measured[weight] {
			s.t.Errorf("weight %d was not in effect for %d requests", weight, enough)
		}
	}
}

// inBand tells whether part of all is what a share of that size gives in 99.9 % of
// all cases.
func inBand(part, all int64, share float64) bool {
	mean := float64(all) * share
	return math.Abs(float64(part)-mean) <= band*math.Sqrt(mean*(1-share))+0.5
}

func TestInBand(t *testing.T) {
	for _, test := range []struct {
		name      string
		part, all int64
		share     float64
		want      bool
	}{
		{"the mean is", 400, 4000, 0.1, true},
		{"3 standard deviations are", 457, 4000, 0.1, true},
		{"4 standard deviations above are not", 476, 4000, 0.1, false},
		{"4 standard deviations below are not", 324, 4000, 0.1, false},
		{"nothing at weight 0 is", 0, 4000, 0, true},
		{"one request at weight 0 is not", 1, 4000, 0, false},
		{"one missing request at weight 100 is not", 3999, 4000, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := inBand(test.part, test.all, test.share); got != test.want {
				t.Errorf("%d of %d at %g: %t, want %t", test.part, test.all, test.share, got, test.want)
			}
		})
	}
}
