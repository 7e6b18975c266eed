// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// figuresEvery is how far apart writes of the status are that tell of nothing but what the
// versions answered. No decision depends on that, and it is different each time.
const figuresEvery = 15 * time.Second

// debounced puts such a write off, if the status was written not long ago.
func debounced(s *snapshot, d Decision) Decision {
	now := &s.CanaryRelease.Status
	left := min(figuresEvery-s.Now.Sub(s.ReportedAt), figuresEvery)
	if s.ReportedAt.IsZero() || left <= 0 || apiequality.Semantic.DeepEqual(*now, d.Status) ||
		!apiequality.Semantic.DeepEqual(withoutFigures(now), withoutFigures(&d.Status)) {
		return d
	}
	d.Status = *now.DeepCopy()
	if d.After == 0 || left < d.After {
		d.After = left
	}
	return d
}

func withoutFigures(s *v1alpha1.CanaryReleaseStatus) *v1alpha1.CanaryReleaseStatus {
	out := s.DeepCopy()
	for i := range out.Services {
		out.Services[i].Traffic = nil
	}
	return out
}
