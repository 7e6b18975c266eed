// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/debounce"
	"github.com/serin-dev/serin/controllers/release/state"
)

// quietTime is how long the status may be behind with what costs a write each and decides
// nothing: pods that get ready one by one, evidence that grows with every window, and what
// a release is waiting for, that its weight is live among it. Nothing is lost by a crash:
// pods are counted again, windows that were not put on record are judged again, a route that
// the split requests already is known by the step that wants it, and a step that is found
// live begins its hold and its evidence anew.
const quietTime = 30 * time.Second

// soon is how much longer it may be behind where the release goes on by then, with a write.
const soon = 30 * time.Second

// debounced puts the write of a status off that differs from the stored one in nothing that
// must not be forgotten, if that was written not long ago, or if a recording is to be stored
// in its place. What is announced is stored first.
func debounced(s *state.Snapshot, d state.Decision) state.Decision {
	stored := s.Stored
	if stored == nil {
		stored = &s.Rollout.Status
	}
	left, leftOut := timeLeft(s, d.Status.NextTransitionTime)
	if left <= 0 || !mayWait(stored, &d) {
		return d
	}
	d.Later, d.LeftOut = true, leftOut
	if step := d.Status.Step; step != nil && step.ProgrammedAt == nil {
		d.Status.Weight = stored.Weight.DeepCopy() // it is asked for again only with pods for it
	}
	if d.After == 0 || left < d.After {
		d.After = left
	}
	return d
}

// untilNext is how long it takes until the release goes on, if that is soon after some time; else
// 0. An operator that has not written the status yet does that first.
func untilNext(s *state.Snapshot, next *metav1.Time, after time.Duration) time.Duration {
	if next == nil || s.ReportedAt.IsZero() {
		return 0
	}
	left := next.Add(time.Second).Sub(s.Now) // it is given in whole seconds
	if left > after+soon {
		return 0
	}
	return left
}

// timeLeft is how long the write of a status may wait now, and whether that is to store a
// recording in its place.
func timeLeft(s *state.Snapshot, next *metav1.Time) (left time.Duration, leftOut bool) {
	left = debounce.Left(s.ReportedAt, quietTime, s.Now)
	switch {
	case s.LeaveOut && left <= 0:
		return quietTime, true
	case s.LeaveOut:
		return left, false
	}
	return max(left, untilNext(s, next, left)), false
}

// mayWait reports whether a status has anything new, and nothing that must not be forgotten.
func mayWait(stored *v1alpha1.RolloutStatus, d *state.Decision) bool {
	return !slices.ContainsFunc(d.Events, announced) &&
		!apiequality.Semantic.DeepEqual(*stored, d.Status) && sameEssence(stored, &d.Status)
}

// sameEssence reports whether nothing happened between two statuses that must not be
// forgotten. That a step has no evidence yet is known from the step.
func sameEssence(stored, next *v1alpha1.RolloutStatus) bool {
	a, b := essence(stored), essence(next)
	if b.Analysis == nil && next.Analysis != nil {
		a.Analysis = nil
		if c := meta.FindStatusCondition(a.Conditions, v1alpha1.ConditionAnalysisPassed); c != nil {
			*c = waiting(*c)
		}
	}
	return apiequality.Semantic.DeepEqual(a, b)
}

// waiting is a condition that says that it waits.
func waiting(c metav1.Condition) metav1.Condition {
	return metav1.Condition{Type: c.Type, Reason: "Waiting", ObservedGeneration: c.ObservedGeneration}
}

// announced reports whether users get to know of an event.
func announced(e kit.Event) bool { return !e.Routine }

// essence is the status without its figures and without what is waited for: what changes
// only when something happens.
func essence(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	out := withoutFigures(s)
	out.NextTransitionTime = nil
	if out.Weight != nil {
		out.Weight = &v1alpha1.WeightStatus{}
	}
	if step := out.Step; step != nil {
		step.PreparedAt, step.ProgrammedAt = nil, nil
	}
	if a := out.Analysis; a != nil && a.Verdict == string(judge.Inconclusive) && a.Reason == "Waiting" {
		out.Analysis = nil // there is no evidence yet
	}
	for i, c := range out.Conditions {
		out.Conditions[i].LastTransitionTime = metav1.Time{} // one that is again what it was is no news
		if slices.Contains(waits[c.Type], c.Reason) {
			out.Conditions[i] = waiting(c)
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
	v1alpha1.ConditionTrafficRouted: {v1alpha1.ReasonWaitingForTraffic, v1alpha1.ReasonProgrammed, v1alpha1.ReasonCleaningUp},
	v1alpha1.ConditionAnalysisPassed: {
		v1alpha1.ReasonNoRelease, string(judge.ReasonMissingData), string(judge.ReasonStartingUp), string(judge.ReasonTooFewRequests),
	},
}

var waitReasons = []string{
	v1alpha1.ReasonPreparing, v1alpha1.ReasonWaitingForPods, v1alpha1.ReasonWaitingForTraffic,
	v1alpha1.ReasonHolding, v1alpha1.ReasonWaitingForEvidence,
	v1alpha1.ReasonPromoting, v1alpha1.ReasonRollingBack, v1alpha1.ReasonCleaningUp,
}
