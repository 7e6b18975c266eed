// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// decision puts the pass together.
func (p *pass) decision() Decision {
	st := &p.status
	st.ObservedGeneration = p.Rollout.Generation
	st.NextTransitionTime = nil
	if p.next.After(p.Now) {
		t := metav1.NewTime(p.next.Truncate(time.Second).UTC())
		st.NextTransitionTime = &t
	}
	if p.Unreadable == "" {
		p.dropQuestions()
	}
	p.reportVersions()
	p.reportWeight()
	for _, c := range p.conditions() {
		c.ObservedGeneration, c.LastTransitionTime = p.Rollout.Generation, metav1.NewTime(p.Now)
		meta.SetStatusCondition(&st.Conditions, c)
	}
	p.reportAbnormal(v1alpha1.ConditionReconciling, p.state.progress && !p.state.stalled)
	p.reportAbnormal(v1alpha1.ConditionStalled, p.state.stalled)
	d := Decision{
		Status: *st, Actions: p.actions, Events: p.events, Measure: p.measure, Weight: p.weight(), After: p.after,
		Questions: p.questions, Notifications: st.Notifications,
	}
	p.withhold(&d)
	return d
}

func (p *pass) reportVersions() {
	for _, v := range []*v1alpha1.VersionStatus{p.status.Stable, p.status.Canary} {
		if v == nil || p.Unreadable != "" {
			continue
		}
		if p.paired() {
			p.reportPair(v)
			continue
		}
		if p.delegated() {
			p.reportDelegated(v)
			continue
		}
		v.Replicas, v.Ready = 0, 0
		if r := p.find(func(r *ReplicaSet) bool { return r.Revision == v.Revision }); r != nil {
			v.Replicas, v.Ready = r.Replicas, r.Available
		}
	}
}

// reportWeight notes which weight is in effect, and since when.
func (p *pass) reportWeight() {
	w := p.status.Weight
	if w != nil && p.byReplicas && p.Unreadable == "" {
		p.reportShare(w)
		return
	}
	if w == nil || p.Unreadable != "" {
		return
	}
	if p.weightless() {
		w.Observed, w.Since = nil, nil
		return
	}
	observed, settled := p.Split.Observed, p.settled(w)
	switch {
	case !settled:
		w.Since = nil
	case w.Since == nil || w.Observed == nil || *w.Observed != observed:
		at := p.micro()
		w.Since = &at
	}
	w.Observed = &observed
}

// weightless reports whether nobody knows of a weight in effect, or there is none.
func (p *pass) weightless() bool {
	return p.leaving || p.Split.Presence != Present || p.Split.Observed < 0
}

// settled reports whether the weight that Serin asked for last is in effect.
func (p *pass) settled(w *v1alpha1.WeightStatus) bool {
	return p.Split.InEffect && p.Split.Observed == w.Requested && p.Split.Requested.Weight == w.Requested
}

// reportShare notes the share of the canary's pods.
func (p *pass) reportShare(w *v1alpha1.WeightStatus) {
	var canary, stable int32
	if c := p.status.Canary; c != nil {
		// It may be the Deployment's already.
		if r := p.find(func(r *ReplicaSet) bool { return r.Revision == c.Revision }); r != nil {
			canary = r.Available
		}
	}
	if s := p.stable(); s != nil {
		stable = s.Available
	}
	observed := share(canary, stable)
	w.Observed = &observed
}

// weight is what the measurement may take for constant; its time is zero while
// the weight changes.
func (p *pass) weight() analysis.Weight {
	w := p.status.Weight
	if w == nil || w.Since == nil || w.Observed == nil {
		return analysis.Weight{}
	}
	return analysis.Weight{Percent: *w.Observed, Since: w.Since.Time}
}

func (p *pass) conditions() []metav1.Condition {
	return []metav1.Condition{
		condition(v1alpha1.ConditionReady, p.state.ready, p.state.reason, p.state.message),
		p.progressing(), p.trafficRouted(), p.analysisPassed(), p.paused(),
	}
}

func condition(kind string, is bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: shorten(message)}
	if is {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func (p *pass) progressing() metav1.Condition {
	return condition(v1alpha1.ConditionProgressing, p.state.progress, p.state.reason, p.state.message)
}

func (p *pass) trafficRouted() metav1.Condition {
	const kind = v1alpha1.ConditionTrafficRouted
	w := p.status.Weight
	switch {
	case !p.RouterOffered:
		return condition(kind, false, v1alpha1.ReasonRouterUnavailable, p.state.message)
	case p.Split.Refused != "":
		return condition(kind, false, v1alpha1.ReasonRouterRefused, p.Split.Refused)
	case p.byReplicas:
		return condition(kind, true, v1alpha1.ReasonNotInPath, "The router is none: nothing is in the path, and the Service spreads its traffic over the pods of both versions.")
	case w == nil:
		return condition(kind, true, v1alpha1.ReasonNotInPath, "No release is in progress: traffic flows as without Serin.")
	case p.leaving:
		return condition(kind, false, v1alpha1.ReasonCleaningUp, "The traffic returns to the Service.")
	case p.settled(w):
		return condition(kind, true, v1alpha1.ReasonInEffect, "The router reports the requested weight in effect.")
	}
	return condition(kind, false, v1alpha1.ReasonWaitingForTraffic, "The requested weight is not in effect yet: "+p.trafficWait(p.Split.Requested)+".")
}

func (p *pass) analysisPassed() metav1.Condition {
	const kind = v1alpha1.ConditionAnalysisPassed
	a := p.status.Analysis
	if a == nil && p.byReplicas {
		c := condition(kind, false, v1alpha1.ReasonNotMeasured, "Nothing measures the traffic with the router none: steps go by time and by the pods' readiness.")
		c.Status = metav1.ConditionUnknown
		return c
	}
	if a == nil {
		c := condition(kind, false, v1alpha1.ReasonNoRelease, "No release is being analysed.")
		c.Status = metav1.ConditionUnknown
		return c
	}
	c := condition(kind, a.Verdict == "Pass", a.Reason, a.Message)
	if a.Verdict == "Inconclusive" {
		c.Status = metav1.ConditionUnknown
	}
	return c
}

func (p *pass) paused() metav1.Condition {
	if p.Rollout.Spec.Paused {
		return condition(v1alpha1.ConditionPaused, true, v1alpha1.ReasonPaused, "No new steps are begun until spec.paused is false.")
	}
	return condition(v1alpha1.ConditionPaused, false, "NotPaused", "Steps go on by themselves.")
}

// reportAbnormal keeps a kstatus condition only while it is true.
func (p *pass) reportAbnormal(kind string, is bool) {
	if !is {
		meta.RemoveStatusCondition(&p.status.Conditions, kind)
		return
	}
	c := condition(kind, true, p.state.reason, p.state.message)
	c.ObservedGeneration, c.LastTransitionTime = p.Rollout.Generation, metav1.NewTime(p.Now)
	meta.SetStatusCondition(&p.status.Conditions, c)
}
