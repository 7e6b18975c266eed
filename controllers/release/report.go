// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// decision puts the pass together.
func (d *draft) decision() Decision {
	st := &d.status
	st.ObservedGeneration = d.Rollout.Generation
	st.NextTransitionTime = nil
	if d.next.After(d.Now) {
		t := metav1.NewTime(d.next.Truncate(time.Second).UTC())
		st.NextTransitionTime = &t
	}
	if d.Unreadable == "" {
		dropQuestions(d)
		reportVersions(d)
		reportWeight(d)
	}
	for _, c := range conditions(d) {
		c.ObservedGeneration, c.LastTransitionTime = d.Rollout.Generation, metav1.NewTime(d.Now)
		meta.SetStatusCondition(&st.Conditions, c)
	}
	reportAbnormal(d, v1alpha1.ConditionReconciling, d.State.Progress && !d.State.Stalled)
	reportAbnormal(d, v1alpha1.ConditionStalled, d.State.Stalled)
	out := Decision{
		Status: *st, Actions: d.Actions, Events: d.Events, Measure: d.measure, Weight: liveWeight(&d.snapshot), After: d.After,
		Questions: d.questions, Notifications: st.Notifications,
	}
	return debounced(&d.snapshot, out)
}

// reportVersions counts the pods of the versions.
func reportVersions(d *draft) {
	for _, v := range []*v1alpha1.VersionStatus{d.status.Stable, d.status.Canary} {
		if v != nil {
			v.Replicas, v.Ready = d.target.count(&d.snapshot, v)
		}
	}
}

// reportWeight notes which weight is in effect, and since when.
func reportWeight(d *draft) {
	w := d.status.Weight
	switch {
	case w == nil:
		return
	case d.byReplicas:
		w.Observed = new(podShare(&d.snapshot))
		return
	case d.leaving || d.Split.Presence != kit.Present || d.Split.Observed < 0: // nobody knows of one
		w.Observed, w.Since = nil, nil
		return
	}
	observed := d.Split.Observed
	switch {
	case !settled(&d.snapshot):
		w.Since = nil
	case w.Since == nil || w.Observed == nil || *w.Observed != observed:
		at := d.micro()
		w.Since = &at
	}
	w.Observed = &observed
}

// settled reports whether the weight that Serin asked for last is in effect.
func settled(s *snapshot) bool {
	w := s.status.Weight
	return s.Split.Programmed && s.Split.Observed == w.Requested && s.Split.Requested.Weight == w.Requested
}

// podShare is the share of the canary's pods.
func podShare(s *snapshot) int32 {
	var canary, stable int32
	if c := s.status.Canary; c != nil {
		_, canary = s.target.count(s, c) // they may be the Deployment's already
	}
	if rs := s.stable(); rs != nil {
		stable = rs.Available
	}
	return share(canary, stable)
}

// liveWeight is what the measurement may take for constant; its time is zero while
// the weight changes.
func liveWeight(s *snapshot) analysis.Weight {
	w := s.status.Weight
	if w == nil || w.Since == nil || w.Observed == nil {
		return analysis.Weight{}
	}
	return analysis.Weight{Percent: *w.Observed, Since: w.Since.Time}
}

func conditions(d *draft) []metav1.Condition {
	return []metav1.Condition{
		kit.Condition(v1alpha1.ConditionReady, d.State.Ready, d.State.Reason, d.State.Message),
		progressing(d), trafficRouted(d), analysisPassed(&d.snapshot), pausedCondition(&d.snapshot),
	}
}

func progressing(d *draft) metav1.Condition {
	return kit.Condition(v1alpha1.ConditionProgressing, d.State.Progress, d.State.Reason, d.State.Message)
}

func trafficRouted(d *draft) metav1.Condition {
	const kind = v1alpha1.ConditionTrafficRouted
	w := d.status.Weight
	switch {
	case !d.RouterOffered:
		return kit.Condition(kind, false, v1alpha1.ReasonRouterUnavailable, d.State.Message)
	case d.Split.Refused != "":
		return kit.Condition(kind, false, v1alpha1.ReasonRouterRefused, d.Split.Refused)
	case d.byReplicas:
		return kit.Condition(kind, true, v1alpha1.ReasonNoTrafficSplit, "The router is none: the Service spreads its traffic over the pods of both versions.")
	case w == nil:
		return kit.Condition(kind, true, v1alpha1.ReasonNoTrafficSplit, "No release is in progress: traffic flows as without Serin.")
	case d.leaving:
		return kit.Condition(kind, false, v1alpha1.ReasonCleaningUp, "The traffic returns to the Service.")
	case settled(&d.snapshot):
		return kit.Condition(kind, true, v1alpha1.ReasonProgrammed, "The router reports that the requested weight is live.")
	}
	return kit.Condition(kind, false, v1alpha1.ReasonWaitingForTraffic, "The requested weight is not live yet: "+trafficWait(&d.snapshot, d.Split.Requested)+".")
}

func analysisPassed(s *snapshot) metav1.Condition {
	const kind = v1alpha1.ConditionAnalysisPassed
	a := s.status.Analysis
	if a == nil && s.byReplicas {
		c := kit.Condition(kind, false, v1alpha1.ReasonNotMeasured, "Nothing measures the traffic with the router none: steps go by time and by the pods' readiness.")
		c.Status = metav1.ConditionUnknown
		return c
	}
	if a == nil {
		c := kit.Condition(kind, false, v1alpha1.ReasonNoRelease, "No release is being analysed.")
		c.Status = metav1.ConditionUnknown
		return c
	}
	c := kit.Condition(kind, a.Verdict == "Pass", a.Reason, a.Message)
	if a.Verdict == "Inconclusive" {
		c.Status = metav1.ConditionUnknown
	}
	return c
}

func pausedCondition(s *snapshot) metav1.Condition {
	if s.Rollout.Spec.Paused {
		return kit.Condition(v1alpha1.ConditionPaused, true, v1alpha1.ReasonPaused, "No new steps are begun until spec.paused is false.")
	}
	return kit.Condition(v1alpha1.ConditionPaused, false, "NotPaused", "Steps go on by themselves.")
}

// reportAbnormal keeps a kstatus condition only while it is true.
func reportAbnormal(d *draft, kind string, is bool) {
	if !is {
		meta.RemoveStatusCondition(&d.status.Conditions, kind)
		return
	}
	c := kit.Condition(kind, true, d.State.Reason, d.State.Message)
	c.ObservedGeneration, c.LastTransitionTime = d.Rollout.Generation, metav1.NewTime(d.Now)
	meta.SetStatusCondition(&d.status.Conditions, c)
}
