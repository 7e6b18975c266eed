// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// release carries the workload's new template through the steps.
func (p *pass) release(stable *ReplicaSet) {
	canary := p.find(func(r *ReplicaSet) bool { return r.Owner == OwnerRollout && r.Current && !r.Deleting })
	revision := p.revisionOf(canary)
	if p.decided(v1alpha1.ActionRollBack) && p.status.Decision.Revision == revision {
		p.rolledBack()
		return
	}
	if !p.supersede(canary, revision) || !p.begin(canary, revision) || !p.ensureHold(true) || !p.prepare(stable, revision) {
		p.checkDeadline(revision)
		return
	}
	if canary != nil && p.condemned(canary, revision) {
		return
	}
	if p.decided(v1alpha1.ActionPromote) {
		p.promote(canary, revision)
	} else {
		p.step(canary, revision)
	}
}

// condemned judges what the canary answered since the last look, at whatever
// stage the release is, and rolls back if that is too bad.
func (p *pass) condemned(canary *ReplicaSet, revision string) bool {
	p.measure = true
	p.verdict = p.judgeWindows()
	switch {
	case p.verdict.Verdict == judge.Fail:
		p.reject(revision, string(p.verdict.Reason), p.verdict.Explain())
	case canary.Available == 0 && p.Split.Observed > 0 && p.Split.Presence == Present:
		p.reject(revision, v1alpha1.ReasonCanaryUnavailable, "none of the canary's pods was available any more while it got traffic")
	default:
		return false
	}
	return true
}

// revisionOf names the workload's template: by the ReplicaSet that has it, else
// by the one that it had before, else by the name that a new one gets.
func (p *pass) revisionOf(canary *ReplicaSet) string {
	if canary != nil {
		return canary.Revision
	}
	if former := p.former(); former != nil {
		return former.Revision
	}
	return p.Workload.Revision
}

// former is an old ReplicaSet of the Deployment with the present template, when
// the template was set back to an earlier version. The Deployment controller
// would prefer it to any other ReplicaSet of that template, so it must become
// the canary.
func (p *pass) former() *ReplicaSet {
	return p.find(func(r *ReplicaSet) bool {
		return r.Owner == OwnerDeployment && r.Current && r.gone() && !r.Deleting
	})
}

// isRejected reports whether r is kept to know a rejected template again.
func (p *pass) isRejected(r *ReplicaSet) bool {
	return p.decided(v1alpha1.ActionRollBack) && r.Revision == p.status.Decision.Revision && r.Current
}

// supersede takes out the canary of an earlier template, and reports whether none
// is left and the Service of the canary is free for the new revision.
func (p *pass) supersede(canary *ReplicaSet, revision string) bool {
	former := p.status.Canary
	if former != nil && former.Revision != revision {
		if p.status.Decision == nil || p.decided(v1alpha1.ActionPromote) {
			p.close(v1alpha1.OutcomeSuperseded, former.Revision, "A newer template took its place.")
			p.note(false, v1alpha1.ReasonSuperseded, "Revision %s gives way to the newer revision %s", former.Revision, revision)
		}
		p.forgetRelease()
	}
	if p.canaryPodsBeside(canary) {
		p.say(v1alpha1.ReasonSuperseded, "A newer template took the canary's place: taking the old canary out.")
		p.state.progress = true
	}
	if !p.takeOutCanaries(canary) {
		return false
	}
	taken := p.Canary.Presence == Present && p.Canary.Revision != revision
	return !taken || p.ensureNoCanaryTraffic()
}

func (p *pass) canaryPodsBeside(keep *ReplicaSet) bool {
	for _, r := range p.canaries() {
		if !r.gone() && (keep == nil || r.UID != keep.UID) {
			return true
		}
	}
	return false
}

// begin records the release, unless new releases are paused.
func (p *pass) begin(canary *ReplicaSet, revision string) bool {
	if p.status.Canary != nil && p.status.Step != nil {
		return true
	}
	if p.Rollout.Spec.Paused {
		p.say(v1alpha1.ReasonPaused, "A new version waits: spec.paused is true.")
		return false
	}
	started := metav1.NewTime(p.Now)
	p.status.Canary = &v1alpha1.VersionStatus{Revision: revision, StartedAt: &started}
	p.enterStep(0)
	p.note(false, "ReleaseStarted", "Revision %s is being released in %d steps", revision, len(p.steps))
	return true
}

// enterStep moves to a step; the weight and the hold of the step before stay in
// effect until this one's weight is.
func (p *pass) enterStep(i int) {
	n := len(p.steps)
	p.status.Step = &v1alpha1.StepStatus{
		Index: int32(i), Of: int32(n), Summary: fmt.Sprintf("%d/%d", min(i+1, n), n), StartedAt: p.micro(),
	}
}

// prepare puts the traffic under control while there is no canary yet.
func (p *pass) prepare(stable *ReplicaSet, revision string) bool {
	want := []struct {
		role, revision string
		live           Backend
	}{{v1alpha1.RoleStable, stable.Revision, p.Stable}, {v1alpha1.RoleCanary, revision, p.Canary}}
	ready := true
	for _, w := range want {
		if w.live.Presence == Present && w.live.Revision == w.revision && w.live.UpToDate {
			continue
		}
		p.do(ApplyBackend{Role: w.role, Revision: w.revision})
		ready = ready && w.live.Presence == Present && w.live.Revision == w.revision
	}
	if p.Split.Presence == Absent {
		p.ensureWeight(0)
		ready = false
	}
	if p.canaryExists() && ready {
		return true
	}
	if ready && p.ensureWeight(0) {
		return true
	}
	p.say(v1alpha1.ReasonPreparing, "Putting the traffic of the Service %q under control before the canary exists: %s.", p.Rollout.Spec.Service, p.trafficWait(0))
	p.state.progress = true
	return false
}

// canaryExists reports whether a canary has been made for the present template.
func (p *pass) canaryExists() bool {
	return p.find(func(r *ReplicaSet) bool { return r.Owner == OwnerRollout && r.Current && !r.Deleting }) != nil
}

// step takes the present step as far as it goes now.
func (p *pass) step(canary *ReplicaSet, revision string) {
	i := min(int(p.status.Step.Index), len(p.steps)-1)
	s := p.steps[i]
	p.state.progress = true
	if p.status.Step.InEffectAt == nil && p.Rollout.Spec.Paused {
		p.status.Step.StartedAt = p.micro()
	}
	switch {
	case !p.ensurePods(canary, revision, canaryReplicas(s.weight, p.Workload.Replicas)):
		p.checkDeadline(revision)
	case !p.ensureWeight(s.weight):
		p.say(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until %d %% of the traffic goes to the canary: %s.", p.status.Step.Summary, s.weight, p.trafficWait(s.weight))
		p.checkDeadline(revision)
	default:
		p.hold(i, revision)
	}
}

// ensurePods scales the canary and reports whether enough pods are available.
func (p *pass) ensurePods(canary *ReplicaSet, revision string, want int32) bool {
	switch {
	case canary == nil && p.former() != nil:
		p.do(ClaimCanary{target(p.former())})
	case canary == nil:
		p.do(CreateCanary{Revision: revision, Replicas: want})
	case canary.Replicas != want || canary.Desired != p.Workload.Replicas:
		p.do(ScaleReplicaSet{Target: target(canary), Replicas: want, Desired: p.Workload.Replicas})
	}
	var available int32
	if canary != nil {
		available = canary.Available
	}
	if available >= want {
		return canary != nil
	}
	p.say(v1alpha1.ReasonWaitingForPods, "Step %s: %d of the canary's %d pods are available.", p.status.Step.Summary, available, want)
	return false
}

// startHold notes that the weight of the step is in effect.
func (p *pass) startHold(s step) {
	at := p.micro()
	p.status.Step.InEffectAt = &at
	p.verdict = p.startEvidence()
	p.note(false, "WeightInEffect", "Step %s: %d %% of the traffic goes to the canary", p.status.Step.Summary, s.weight)
}

// hold waits for time and evidence, and moves on when there is enough of both.
func (p *pass) hold(i int, revision string) {
	s := p.steps[i]
	if p.status.Step.InEffectAt == nil {
		p.startHold(s)
	}
	heldFor, verdict := p.Now.Sub(p.status.Step.InEffectAt.Time), p.verdict
	where := fmt.Sprintf("Step %s: %d %% of the traffic goes to the canary", p.status.Step.Summary, s.weight)
	end := p.status.Step.InEffectAt.Add(s.hold)
	switch {
	case heldFor < s.hold:
		p.say(v1alpha1.ReasonHolding, "%s until %s at least. %s", where, clockTime(end), p.evidenceSentence(verdict))
		p.wake(end)
	case p.Rollout.Spec.Paused:
		p.say(v1alpha1.ReasonPaused, "%s; no further steps, since spec.paused is true. %s", where, p.evidenceSentence(verdict))
	case s.weight == 0 || verdict.Verdict == judge.Pass:
		p.advance(i, revision, "every step passed")
	default:
		p.inconclusive(i, revision, where)
	}
}

// inconclusive does what the spec says about a step that is over in time but not
// in evidence.
func (p *pass) inconclusive(i int, revision, where string) {
	r := p.verdict
	end := p.status.Step.InEffectAt.Add(max(p.steps[i].hold, minObservation))
	switch {
	case p.onInconclusive == v1alpha1.InconclusiveHold || p.Now.Before(end):
		p.say(v1alpha1.ReasonWaitingForEvidence, "%s and the step goes on until there is evidence. %s", where, p.evidenceSentence(r))
		if p.onInconclusive != v1alpha1.InconclusiveHold {
			p.wake(end)
		}
	case p.onInconclusive == v1alpha1.InconclusivePromote:
		p.advance(i, revision, "the evidence was inconclusive and spec.analysis.onInconclusive is Promote")
	default:
		p.reject(revision, string(r.Reason), "the evidence was inconclusive and spec.analysis.onInconclusive is RollBack: "+r.Explain())
	}
}

// advance enters the next step, or decides to promote after the last one.
func (p *pass) advance(i int, revision, why string) {
	p.enterStep(i + 1)
	if i+1 < len(p.steps) {
		p.say(v1alpha1.ReasonWaitingForPods, "Step %s begins.", p.status.Step.Summary)
	} else {
		p.decide(v1alpha1.ActionPromote, revision, "Passed", "Promoted: "+why+".")
		p.note(false, v1alpha1.ReasonPromoting, "Revision %s is being promoted: %s", revision, why)
		p.say(v1alpha1.ReasonPromoting, "Promoting: %s.", why)
	}
	p.wake(p.Now)
}

// checkDeadline rolls back a step that takes too long to get ready.
func (p *pass) checkDeadline(revision string) {
	s := p.status.Step
	if s == nil || s.InEffectAt != nil || p.Rollout.Spec.Paused || p.status.Canary == nil {
		return
	}
	end := s.StartedAt.Add(p.deadline)
	if p.Now.Before(end) {
		p.wake(end)
		return
	}
	p.reject(revision, v1alpha1.ReasonProgressDeadlineExceeded,
		fmt.Sprintf("step %s was not in effect within %s (%s)", s.Summary, p.deadline, p.state.message))
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05") }
