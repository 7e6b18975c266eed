// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// figuresEvery is how far apart writes of the status are that tell of nothing but what the
// versions answered. Nobody decides by that, and it is different each time.
const figuresEvery = 15 * time.Second

// withhold puts such a write off, if the status was written not long ago.
func (p *pass) withhold(d *Decision) {
	now := &p.CanaryRelease.Status
	left := min(figuresEvery-p.Now.Sub(p.ReportedAt), figuresEvery)
	if p.ReportedAt.IsZero() || left <= 0 || apiequality.Semantic.DeepEqual(*now, d.Status) ||
		!apiequality.Semantic.DeepEqual(withoutFigures(now), withoutFigures(&d.Status)) {
		return
	}
	d.Status = *now.DeepCopy()
	if d.After == 0 || left < d.After {
		d.After = left
	}
}

func withoutFigures(s *v1alpha1.CanaryReleaseStatus) *v1alpha1.CanaryReleaseStatus {
	out := s.DeepCopy()
	for i := range out.Services {
		out.Services[i].Traffic = nil
	}
	return out
}
