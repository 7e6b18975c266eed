// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/debounce"
)

// quietTime is how long the figures of the status may be behind: pods that get
// ready one by one, and evidence that grows with every window, are not worth a
// write each. Nothing is lost by a crash: pods can be counted again, and windows
// that were not put on record are judged again.
const quietTime = 10 * time.Second

// debounced puts a new status off that differs from the present one in figures
// only, if that was written not long ago.
func debounced(s *snapshot, d Decision) Decision {
	now := &s.Rollout.Status
	left := debounce.Left(s.ReportedAt, quietTime, s.Now)
	if left <= 0 || // first what costs nothing: this is the usual case
		apiequality.Semantic.DeepEqual(*now, d.Status) ||
		!apiequality.Semantic.DeepEqual(essence(now, s.byReplicas), essence(&d.Status, s.byReplicas)) {
		return d
	}
	d.Status = *now.DeepCopy()
	if d.After == 0 || left < d.After {
		d.After = left
	}
	return d
}

// essence is the status without its figures: what changes only when something
// happens.
func essence(s *v1alpha1.RolloutStatus, byReplicas bool) *v1alpha1.RolloutStatus {
	out := s.DeepCopy()
	for _, v := range []*v1alpha1.VersionStatus{out.Stable, out.Canary} {
		if v != nil {
			v.Replicas, v.Ready = 0, 0
		}
	}
	if w := out.Weight; w != nil && byReplicas {
		w.Observed = nil // it follows the pods
	}
	if a := out.Analysis; a != nil {
		out.Analysis = &v1alpha1.AnalysisStatus{Verdict: a.Verdict, Reason: a.Reason}
	}
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
	}
	for i := range out.Hooks {
		out.Hooks[i].Message = ""
	}
	return out
}
