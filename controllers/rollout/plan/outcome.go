// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	maxHistory = 10
	maxMessage = 1024
)

// decide records the verdict on a revision. It is written before it is acted on.
func (p *pass) decide(a v1alpha1.DecisionAction, revision, reason, message string) {
	p.status.Decision = &v1alpha1.Decision{
		Revision: revision, Action: a, Reason: reason, Message: shorten(message), Time: p.micro(),
	}
}

// reject decides to roll back, and begins with it: the status is written first.
func (p *pass) reject(reason, why string) {
	p.decide(v1alpha1.ActionRollBack, p.revision, reason, why)
	p.close(v1alpha1.OutcomeRolledBack, p.revision, why)
	p.note(true, v1alpha1.ReasonRollingBack, "Revision %s is being rolled back: %s", p.revision, why)
	p.actions, p.after, p.measure = slices.DeleteFunc(p.actions, func(a Action) bool {
		_, keep := a.(AddFinalizer)
		return !keep
	}), 0, false
	p.rolledBack()
}

// rolledBack takes the rejected canary out, and stays there until the template
// changes. It never waits for the canary to be healthy.
func (p *pass) rolledBack() {
	d := p.status.Decision
	p.state = state{}
	if !p.endRelease() || !p.cleanUp() || !p.ensureHold(true) {
		p.state.reason = v1alpha1.ReasonRollingBack
		p.state.message = shorten("Rolling back revision " + d.Revision + " (" + d.Message + "). " + p.state.message)
		p.state.progress = true
		return
	}
	p.say(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. Stable revision %s has all traffic; change the template to go on.", d.Revision, d.Message, p.status.Stable.Revision)
	p.state.stalled = true
}

// promote makes the canary ready to take the workload over, and hands it over.
// A canary that is not exactly at full scale, down to its last pod, is never
// handed over: the Deployment controller would scale both versions in proportion.
func (p *pass) promote() {
	if p.status.Step == nil {
		p.enterStep(len(p.steps))
	}
	if !p.ensurePods(p.Workload.Replicas) {
		p.say(v1alpha1.ReasonPromoting, "Promoting: %s", p.state.message)
		p.checkDeadline()
		return
	}
	if !p.ensureWeight(100) {
		p.say(v1alpha1.ReasonPromoting, "Promoting: waiting until all traffic goes to the canary: %s.", p.trafficWait(100))
		p.checkDeadline()
		return
	}
	if n := p.canary.Existing; n != p.canary.Available || n != p.Workload.Replicas {
		p.say(v1alpha1.ReasonPromoting, "Promoting: the canary has %d pods and is being scaled to %d.", n, p.Workload.Replicas)
		p.checkDeadline()
		return
	}
	p.say(v1alpha1.ReasonPromoting, "Promoting: handing the canary's pods over to the Deployment.")
	p.do(ReleaseCanary{target(p.canary)})
}

// adopt waits until the Deployment has the promoted ReplicaSet and the old pods
// are gone; then it is the stable version.
func (p *pass) adopt(r *ReplicaSet) {
	p.state.progress = true
	p.say(v1alpha1.ReasonPromoting, "Promoting: waiting for the Deployment to take the canary's pods over.")
	if p.Split.Presence == Present && !p.Split.Deleting {
		p.ensureWeight(100)
	}
	if r.Owner != OwnerDeployment || !p.oldPodsGone(r) {
		return
	}
	p.close(v1alpha1.OutcomePromoted, r.Revision, p.status.Decision.Message)
	p.note(false, "Promoted", "Revision %s is stable now", r.Revision)
	p.record(r)
	p.state = state{}
	if !p.Rollout.DeletionTimestamp.IsZero() {
		p.delete()
		return
	}
	p.converge()
}

// oldPodsGone sees to it that no pod is left but those of the promoted version.
func (p *pass) oldPodsGone(promoted *ReplicaSet) bool {
	gone := true
	for i := range p.ReplicaSets {
		old := &p.ReplicaSets[i]
		if old.Owner != OwnerDeployment || old.UID == promoted.UID || old.gone() {
			continue
		}
		gone = false
		p.say(v1alpha1.ReasonPromoting, "Promoting: the old pods are being removed, %d are left.", old.Existing)
		if !promoted.Current && old.Replicas > 0 {
			// The template has moved on, so the Deployment controller would not do it.
			p.do(ScaleReplicaSet{Target: target(old), Replicas: 0, Desired: old.Desired})
		}
	}
	if !gone && promoted.Current && promoted.Replicas != p.Workload.Replicas && p.Workload.Paused {
		// Scaled in this very moment: a paused Deployment would keep both versions.
		p.do(SetHold{Paused: false})
	}
	return gone
}

// close adds an entry to the history. One revision is closed once for each release.
func (p *pass) close(outcome, revision, message string) {
	entry := v1alpha1.HistoryEntry{
		Revision: revision, Outcome: outcome, Message: shorten(message), EndedAt: metav1.NewTime(p.Now),
	}
	if p.status.Canary != nil && p.status.Canary.StartedAt != nil {
		entry.StartedAt = p.status.Canary.StartedAt
	}
	p.status.History = append([]v1alpha1.HistoryEntry{entry}, p.status.History...)
	if len(p.status.History) > maxHistory {
		p.status.History = p.status.History[:maxHistory]
	}
}

func shorten(s string) string {
	r := []rune(s)
	if len(r) <= maxMessage {
		return s
	}
	return string(r[:maxMessage-1]) + "…"
}
