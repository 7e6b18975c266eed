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
	p.canary = p.find(func(r *ReplicaSet) bool { return r.Owner == OwnerRollout && r.Current && !r.Deleting })
	p.revision = p.currentRevision()
	if p.decided(v1alpha1.ActionRollBack) && p.status.Decision.Revision == p.revision {
		p.rolledBack()
		return
	}
	if !p.supersede() || !p.begin() {
		p.checkDeadline()
		return
	}
	if p.condemned() {
		return
	}
	if !p.ensureHold(true) || !p.prepare(stable) {
		p.checkDeadline()
		return
	}
	p.proceed()
}

// proceed takes the present step, or the promotion after the last one, as far as
// it goes now.
func (p *pass) proceed() {
	p.state.progress = true
	if p.decided(v1alpha1.ActionPromote) {
		p.promote()
	} else {
		p.step()
	}
}

// condemned judges what the canary answered since the last look, at whatever
// stage the release is, and rolls back if that is too bad.
func (p *pass) condemned() bool {
	called := p.Split.Presence == Present && p.Split.Observed > 0
	if p.canary == nil {
		if called {
			p.reject(v1alpha1.ReasonCanaryUnavailable, "the canary's ReplicaSet was deleted while it got traffic")
		}
		return called
	}
	p.measure = true
	p.verdict = p.judgeWindows()
	if a := p.status.Analysis; p.verdict.Reason != judge.ReasonStaleData && a.LastWindowEnd != nil {
		p.wake(a.LastWindowEnd.Add(p.judge.StaleAfter + time.Second))
	}
	switch {
	case p.verdict.Verdict == judge.Fail:
		p.reject(string(p.verdict.Reason), p.verdict.Explain())
	case called && p.canary.Available == 0:
		p.reject(v1alpha1.ReasonCanaryUnavailable, "none of the canary's pods was available any more while it got traffic")
	default:
		return false
	}
	return true
}

// currentRevision names the workload's template: by the ReplicaSet that has it, else
// by the one that it had before, else by the name that a new one gets.
func (p *pass) currentRevision() string {
	if p.canary != nil {
		return p.canary.Revision
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
func (p *pass) supersede() bool {
	former := p.status.Canary
	if former != nil && former.Revision != p.revision {
		if p.status.Decision == nil || p.decided(v1alpha1.ActionPromote) {
			p.close(v1alpha1.OutcomeSuperseded, former.Revision, "A newer template took its place.")
			p.note(false, v1alpha1.ReasonSuperseded, "Revision %s gives way to the newer revision %s", former.Revision, p.revision)
		}
		p.forgetRelease()
	}
	if p.canaryPods(p.canary) {
		p.say(v1alpha1.ReasonSuperseded, "A newer template took the canary's place: taking the old canary out.")
		p.state.progress = true
	}
	if !p.takeOutCanaries(p.canary) {
		return false
	}
	taken := p.CanaryService.Presence == Present && p.CanaryService.Revision != p.revision
	return !taken || p.ensureNoCanaryTraffic()
}

// begin records the release, unless new releases are paused.
func (p *pass) begin() bool {
	if p.status.Canary != nil && p.status.Step != nil {
		return true
	}
	if p.Rollout.Spec.Paused {
		p.say(v1alpha1.ReasonPaused, "A new version waits: spec.paused is true.")
		return false
	}
	started := metav1.NewTime(p.Now)
	p.status.Canary = &v1alpha1.VersionStatus{Revision: p.revision, StartedAt: &started}
	p.enterStep(0)
	p.note(false, "ReleaseStarted", "Revision %s is being released in %d steps", p.revision, len(p.steps))
	return true
}

// enterStep moves to a step; the weight and the hold of the step before stay in
// effect until this one's weight is.
func (p *pass) enterStep(i int) {
	n := len(p.steps)
	p.status.Step = &v1alpha1.StepStatus{
		Index: int32(i), Of: int32(n), //nolint:gosec // the schema allows 50 steps
		Summary: fmt.Sprintf("%d/%d", min(i+1, n), n), StartedAt: p.micro(),
	}
}

// prepare puts the traffic under control while there is no canary yet.
func (p *pass) prepare(stable *ReplicaSet) bool {
	want := []struct {
		role, revision string
		live           Backend
	}{{v1alpha1.RoleStable, stable.Revision, p.StableService}, {v1alpha1.RoleCanary, p.revision, p.CanaryService}}
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
	if p.canary != nil && ready {
		return true
	}
	if ready && p.ensureWeight(0) {
		return true
	}
	p.say(v1alpha1.ReasonPreparing, "Putting the traffic of the Service %q under control before the canary exists: %s.", p.Rollout.Spec.Service, p.trafficWait(0))
	p.state.progress = true
	return false
}

// step takes the present step as far as it goes now.
func (p *pass) step() {
	i := min(int(p.status.Step.Index), len(p.steps)-1)
	s := p.steps[i]
	if p.status.Step.InEffectAt == nil && p.Rollout.Spec.Paused {
		p.status.Step.StartedAt = p.micro()
	}
	switch {
	case !p.ensurePods(canaryReplicas(s.weight, p.Workload.Replicas)):
		p.checkDeadline()
	case !p.ensureWeight(s.weight):
		p.say(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until %d %% of the traffic goes to the canary: %s.", p.status.Step.Summary, s.weight, p.trafficWait(s.weight))
		p.checkDeadline()
	default:
		p.hold(i)
	}
}

// ensurePods scales the canary and reports whether it is at that scale and its
// pods are available.
func (p *pass) ensurePods(want int32) bool {
	canary := p.canary
	switch {
	case canary == nil && p.former() != nil:
		p.do(ClaimCanary{target(p.former())})
	case canary == nil:
		p.do(CreateCanary{Revision: p.revision, Replicas: want})
	case canary.Replicas != want || canary.Desired != p.Workload.Replicas:
		p.do(ScaleReplicaSet{Target: target(canary), Replicas: want, Desired: p.Workload.Replicas})
	}
	var available int32
	if canary != nil {
		available = canary.Available
		if available >= want && canary.Replicas == want && canary.Desired == p.Workload.Replicas {
			return true
		}
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
func (p *pass) hold(i int) {
	s := p.steps[i]
	if p.status.Step.InEffectAt == nil {
		p.startHold(s)
	}
	// The stored time is rounded up, so the first look may come before it.
	heldFor, verdict := max(p.Now.Sub(p.status.Step.InEffectAt.Time), 0), p.verdict
	where := fmt.Sprintf("Step %s: %d %% of the traffic goes to the canary", p.status.Step.Summary, s.weight)
	end := p.status.Step.InEffectAt.Add(s.hold)
	switch {
	case heldFor < s.hold:
		p.say(v1alpha1.ReasonHolding, "%s until %s at least. %s", where, clockTime(end), p.evidenceSentence(verdict))
		p.wake(end)
	case p.Rollout.Spec.Paused:
		p.say(v1alpha1.ReasonPaused, "%s; no further steps, since spec.paused is true. %s", where, p.evidenceSentence(verdict))
	case s.weight == 0 || verdict.Verdict == judge.Pass:
		p.advance(i, "every step passed")
	default:
		p.inconclusive(i, where)
	}
}

// inconclusive does what the spec says about a step that is over in time but not
// in evidence.
func (p *pass) inconclusive(i int, where string) {
	r := p.verdict
	end := p.status.Step.InEffectAt.Add(max(p.steps[i].hold, minObservation))
	switch {
	case p.onInconclusive == v1alpha1.InconclusiveHold || p.Now.Before(end):
		p.say(v1alpha1.ReasonWaitingForEvidence, "%s and the step goes on until there is evidence. %s", where, p.evidenceSentence(r))
		if p.onInconclusive != v1alpha1.InconclusiveHold {
			p.wake(end)
		}
	case p.onInconclusive == v1alpha1.InconclusivePromote:
		p.advance(i, "the evidence was inconclusive and spec.analysis.onInconclusive is Promote")
	default:
		p.reject(string(r.Reason), "the evidence was inconclusive and spec.analysis.onInconclusive is RollBack: "+r.Explain())
	}
}

// advance enters the next step, or decides to promote after the last one.
func (p *pass) advance(i int, why string) {
	p.enterStep(i + 1)
	if i+1 == len(p.steps) {
		p.decide(v1alpha1.ActionPromote, p.revision, "Passed", "Promoted: "+why+".")
		p.note(false, v1alpha1.ReasonPromoting, "Revision %s is being promoted: %s", p.revision, why)
	}
	p.proceed()
}

// checkDeadline rolls back a step that takes too long to get ready.
func (p *pass) checkDeadline() {
	s := p.status.Step
	if s == nil || s.InEffectAt != nil || p.Rollout.Spec.Paused || p.status.Canary == nil {
		return
	}
	end := s.StartedAt.Add(p.deadline)
	if p.Now.Before(end) {
		p.wake(end)
		return
	}
	p.reject(v1alpha1.ReasonProgressDeadlineExceeded,
		fmt.Sprintf("step %s was not in effect within %s (%s)", s.Summary, p.deadline, p.state.message))
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05") }
