// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/deployment"
	"github.com/serin-dev/serin/controllers/release/gates"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// conclude puts the pass together.
func conclude(d *state.Draft) state.Decision {
	st := &d.Status
	st.ObservedGeneration = d.Rollout.Generation
	st.NextTransitionTime = nil
	if d.Next.After(d.Now) {
		t := metav1.NewTime(d.Next.Truncate(time.Second).UTC())
		st.NextTransitionTime = &t
	}
	if d.Unreadable == "" {
		gates.DropQuestions(d)
		reportVersions(d)
		reportWeight(d)
		reportUnguarded(d)
	}
	report(d, conditions(d)...)
	out := state.Decision{
		Status: *st, Actions: d.Actions, Events: d.Events, Measure: d.Measure, Weight: liveWeight(&d.Snapshot), After: d.After,
		Questions: d.Questions, Notifications: st.Notifications, Entries: d.Entries, Recorded: d.Recorded, Outage: d.Outage(),
	}
	return debounced(&d.Snapshot, out)
}

// AwaitEarlier is what a Rollout says while what an earlier one of its name left is restored, and why that is not
// done yet. Nothing else of its status changes.
func AwaitEarlier(o state.Observation, why string) state.Decision {
	d := &state.Draft{Snapshot: state.Snapshot{Observation: o, Status: *o.Rollout.Status.DeepCopy()}}
	d.Wait(v1alpha1.ReasonCleaningUp, "What an earlier Rollout of the name left is removed first. %s", why)
	report(d, ready(d), progressing(d))
	return debounced(&d.Snapshot, state.Decision{Status: d.Status})
}

// report sets conditions, and those of kstatus.
func report(d *state.Draft, conditions ...metav1.Condition) {
	for _, c := range conditions {
		c.ObservedGeneration, c.LastTransitionTime = d.Rollout.Generation, metav1.NewTime(d.Now)
		meta.SetStatusCondition(&d.Status.Conditions, c)
	}
	reportAbnormal(d, v1alpha1.ConditionReconciling, d.State.Progress && !d.State.Stalled)
	reportAbnormal(d, v1alpha1.ConditionStalled, d.State.Stalled)
}

// reportVersions counts the pods of the versions.
func reportVersions(d *state.Draft) {
	for _, v := range []*v1alpha1.VersionStatus{d.Status.Stable, d.Status.Canary} {
		if v != nil {
			v.Replicas, v.Ready = d.Count(v)
		}
	}
}

// reportWeight notes which weight is live, and since when.
func reportWeight(d *state.Draft) {
	w := d.Status.Weight
	switch {
	case w == nil:
		return
	case d.ByReplicas:
		noteLive(d, w, podShare(&d.Snapshot), !d.Unmeasured)
		return
	case d.Leaving || d.Split.Presence != kit.Present || d.Split.Observed < 0: // no weight is known
		w.Observed, w.Since = nil, nil
		return
	}
	noteLive(d, w, d.Split.Observed, settled(&d.Snapshot))
}

// noteLive notes the weight that is observed, and since when it is live.
func noteLive(d *state.Draft, w *v1alpha1.WeightStatus, observed int32, live bool) {
	switch {
	case !live:
		w.Since = nil
	case w.Since == nil || w.Observed == nil || *w.Observed != observed:
		at := d.Micro()
		w.Since = &at
	}
	w.Observed = &observed
}

// settled reports whether the weight that Serin requested last is live.
func settled(s *state.Snapshot) bool {
	w := s.Status.Weight
	return s.Split.Programmed && s.Split.Observed == w.Requested && s.Split.Requested.Weight == w.Requested
}

// podShare is the share of the canary's pods.
func podShare(s *state.Snapshot) int32 {
	var canary, stable int32
	if c := s.Status.Canary; c != nil {
		_, canary = s.Count(c) // they may be the Deployment's already
	}
	if rs := s.Stable(); rs != nil {
		stable = rs.Available
	}
	return strategy.Share(canary, stable)
}

// liveWeight is what the measurement may take for constant; its time is zero while
// the weight changes.
func liveWeight(s *state.Snapshot) analysis.Weight {
	w := s.Status.Weight
	if w == nil || w.Since == nil || w.Observed == nil {
		return analysis.Weight{}
	}
	return analysis.Weight{Percent: *w.Observed, Since: w.Since.Time}
}

func conditions(d *state.Draft) []metav1.Condition {
	return []metav1.Condition{
		ready(d), progressing(d), trafficRouted(d), analysisPassed(&d.Snapshot), pausedCondition(&d.Snapshot),
	}
}

func ready(d *state.Draft) metav1.Condition {
	return kit.Condition(v1alpha1.ConditionReady, d.State.Ready, d.State.Reason, d.State.Message)
}

func progressing(d *state.Draft) metav1.Condition {
	return kit.Condition(v1alpha1.ConditionProgressing, d.State.Progress, d.State.Reason, d.State.Message)
}

func trafficRouted(d *state.Draft) metav1.Condition {
	const kind = v1alpha1.ConditionTrafficRouted
	w := d.Status.Weight
	switch {
	case !d.RouterOffered:
		return kit.Condition(kind, false, v1alpha1.ReasonRouterUnavailable, d.State.Message)
	case d.Split.Refused != "":
		return kit.Condition(kind, false, v1alpha1.ReasonRouterRefused, d.Split.Refused)
	case d.ByReplicas:
		return kit.Condition(kind, true, v1alpha1.ReasonNoTrafficSplit, "The router is none: the Service spreads its traffic over the pods of both versions.")
	case w == nil:
		return kit.Condition(kind, true, v1alpha1.ReasonNoTrafficSplit, "No release is in progress: traffic flows as without Serin.")
	case d.Leaving:
		return kit.Condition(kind, false, v1alpha1.ReasonCleaningUp, "The traffic returns to the Service.")
	case settled(&d.Snapshot):
		return kit.Condition(kind, true, v1alpha1.ReasonProgrammed, "The router reports that the requested weight is live.")
	}
	return kit.Condition(kind, false, v1alpha1.ReasonWaitingForTraffic, "The requested weight is not live yet: "+routing.TrafficWait(&d.Snapshot, d.Split.Requested)+".")
}

func analysisPassed(s *state.Snapshot) metav1.Condition {
	const kind = v1alpha1.ConditionAnalysisPassed
	a := s.Status.Analysis
	if a == nil && s.Unmeasured {
		c := kit.Condition(kind, false, v1alpha1.ReasonNotMeasured, "Nothing measures the traffic, since the router is none and spec.analysis is not set: steps go by time and by the pods' readiness.")
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

func pausedCondition(s *state.Snapshot) metav1.Condition {
	if s.Rollout.Spec.Paused {
		return kit.Condition(v1alpha1.ConditionPaused, true, v1alpha1.ReasonPaused, "No new steps are begun until spec.paused is false.")
	}
	return kit.Condition(v1alpha1.ConditionPaused, false, "NotPaused", "Steps go on by themselves.")
}

// reportUnguarded says that nothing pauses the Deployment in the write that changes its
// template, while that is so.
func reportUnguarded(d *state.Draft) {
	const kind = v1alpha1.ConditionUnguarded
	if _, is := targetOf(d.Rollout).(deployment.Target); !is || d.GuardInForce {
		meta.RemoveStatusCondition(&d.Status.Conditions, kind)
		return
	}
	c := kit.Condition(kind, true, v1alpha1.ReasonNothingPauses, "Nothing pauses the Deployment in the write that changes its template, so it stays paused between releases; "+
		"set the value holdPolicy.enabled of the operator's chart, and admission.mode to webhook where the cluster serves no MutatingAdmissionPolicy.")
	c.ObservedGeneration, c.LastTransitionTime = d.Rollout.Generation, metav1.NewTime(d.Now)
	meta.SetStatusCondition(&d.Status.Conditions, c)
}

// reportAbnormal keeps a kstatus condition only while it is true.
func reportAbnormal(d *state.Draft, kind string, is bool) {
	if !is {
		meta.RemoveStatusCondition(&d.Status.Conditions, kind)
		return
	}
	c := kit.Condition(kind, true, d.State.Reason, d.State.Message)
	c.ObservedGeneration, c.LastTransitionTime = d.Rollout.Generation, metav1.NewTime(d.Now)
	meta.SetStatusCondition(&d.Status.Conditions, c)
}
