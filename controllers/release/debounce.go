// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/debounce"
	"github.com/serin-dev/serin/controllers/release/state"
)

// quietTime is how long the status may be behind with what costs a write each and decides
// nothing: pods that get ready one by one, evidence that grows with every window, and what
// a release is waiting for. Nothing is lost by a crash: pods are counted again, windows that
// were not put on record are judged again, and a route that the split requests already is
// known by the step that wants it.
const quietTime = 30 * time.Second

// debounced puts a new status off that differs from the present one in nothing that must
// not be forgotten, if that was written not long ago, or if a recording is to be stored in
// its place. What is announced is on record first.
func debounced(s *state.Snapshot, d state.Decision) state.Decision {
	now := &s.Rollout.Status
	left := debounce.Left(s.ReportedAt, quietTime, s.Now)
	if left <= 0 && !s.LeaveOut || len(d.Events) > 0 || // first what costs nothing: this is the usual case
		apiequality.Semantic.DeepEqual(*now, d.Status) ||
		!apiequality.Semantic.DeepEqual(essence(now), essence(&d.Status)) {
		return d
	}
	if left <= 0 {
		left, d.LeftOut = quietTime, true
	}
	d.Status = *now.DeepCopy()
	if d.After == 0 || left < d.After {
		d.After = left
	}
	return d
}

// essence is the status without its figures and without what is waited for: what changes
// only when something happens.
func essence(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	out := withoutFigures(s)
	out.NextTransitionTime = nil
	if out.Weight != nil {
		out.Weight = &v1alpha1.WeightStatus{}
	}
	if step := out.Step; step != nil {
		step.PreparedAt = nil
	}
	for i, c := range out.Conditions {
		if slices.Contains(waits[c.Type], c.Reason) {
			out.Conditions[i] = metav1.Condition{Type: c.Type, Reason: "Waiting", ObservedGeneration: c.ObservedGeneration}
		}
	}
	return out
}

// withoutFigures is the status without what is counted and without sentences.
func withoutFigures(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	out := s.DeepCopy()
	for _, v := range []*v1alpha1.VersionStatus{out.Stable, out.Canary} {
		if v != nil {
			v.Replicas, v.Ready = 0, 0
		}
	}
	if a := out.Analysis; a != nil {
		out.Analysis = &v1alpha1.AnalysisStatus{Verdict: a.Verdict, Reason: a.Reason}
		if slices.Contains(waits[v1alpha1.ConditionAnalysisPassed], a.Reason) {
			out.Analysis.Reason = "Waiting"
		}
	}
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
	}
	for i := range out.Hooks {
		out.Hooks[i].Message = ""
	}
	return out
}

// waits are the reasons of a condition that follow one another while a release is on its
// way to the next thing that happens.
var waits = map[string][]string{
	v1alpha1.ConditionReady:         waitReasons,
	v1alpha1.ConditionProgressing:   waitReasons,
	v1alpha1.ConditionReconciling:   waitReasons,
	v1alpha1.ConditionTrafficRouted: {v1alpha1.ReasonWaitingForTraffic, v1alpha1.ReasonProgrammed},
	v1alpha1.ConditionAnalysisPassed: {
		string(judge.ReasonMissingData), string(judge.ReasonStartingUp), string(judge.ReasonTooFewRequests),
	},
}

var waitReasons = []string{
	v1alpha1.ReasonPreparing, v1alpha1.ReasonWaitingForPods, v1alpha1.ReasonWaitingForTraffic,
	v1alpha1.ReasonHolding, v1alpha1.ReasonWaitingForEvidence,
	v1alpha1.ReasonPromoting, v1alpha1.ReasonRollingBack, v1alpha1.ReasonCleaningUp,
}
