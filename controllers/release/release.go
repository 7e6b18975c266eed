// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// release carries the workload's new template through the steps.
func (p *pass) release(stable *ReplicaSet) {
	p.findCanary()
	if p.decided(v1alpha1.ActionRollBack) && p.status.Decision.Revision == p.revision {
		p.rolledBack()
		return
	}
	if !p.supersede() {
		p.checkDeadline()
		return
	}
	if !p.heed() {
		return
	}
	if p.Workload.Replicas == 0 && !p.decided(v1alpha1.ActionPromote) {
		p.suspend()
		return
	}
	if !p.inPath() || !p.ensureHold(true) || !p.prepare(stable) {
		p.checkDeadline()
		return
	}
	p.proceed()
}

// findCanary finds the ReplicaSet of the workload's template, and names that.
func (p *pass) findCanary() {
	p.canary = p.find(func(r *ReplicaSet) bool { return r.Owner == OwnerRollout && r.Current && !r.Deleting })
	p.revision = p.currentRevision()
}

// heed takes in what people decided and what the traffic says, and reports whether
// the release is under way.
func (p *pass) heed() bool {
	p.enter()
	p.relocate()
	p.obey()
	return !p.decided(v1alpha1.ActionRollBack) && !p.condemned() && p.begin()
}

// inPath notices that somebody deleted the split: the step begins again when it is
// back.
func (p *pass) inPath() bool {
	if p.byReplicas || p.Split.Presence == Present && !p.Split.Deleting {
		return true
	}
	if s := p.status.Step; s.ProgrammedAt != nil {
		p.enterStep(int(s.Index))
	}
	if p.Split.Presence == Absent {
		return true
	}
	p.say(v1alpha1.ReasonWaitingForTraffic, "Step %s: somebody deleted the TrafficSplit; it is made again when it is gone.", p.status.Step.Summary)
	p.state.progress = true
	return false
}

// proceed takes the present step, or the promotion after the last one, as far as
// it goes now.
func (p *pass) proceed() {
	p.state.progress = true
	if !p.restored() {
		return
	}
	if p.decided(v1alpha1.ActionPromote) {
		p.promote()
	} else {
		p.step()
	}
}

// condemned judges what the canary answered since the last look, at whatever
// stage the release is, and rolls back if that is too bad.
func (p *pass) condemned() bool {
	called := p.called()
	if p.canary == nil {
		if called {
			p.reject(v1alpha1.ReasonCanaryUnavailable, "the canary's ReplicaSet was deleted while it got traffic")
		}
		return called
	}
	if !p.byReplicas && p.begun() && p.status.Step != nil {
		p.weigh()
	}
	switch {
	case p.failed && !p.pauseOnFailure:
		p.reject(string(p.verdict.Reason), p.verdict.Explain())
	case called && p.canary.Available == 0 && (p.elsewhere() || p.Workload.Replicas > 0):
		p.reject(v1alpha1.ReasonCanaryUnavailable, "none of the canary's pods was available any more while it got traffic")
	default:
		return false
	}
	return true
}

// called reports whether the canary gets traffic by what was observed.
func (p *pass) called() bool {
	if p.byReplicas {
		s := p.status.Step
		return s != nil && s.ProgrammedAt != nil && s.Weight > 0
	}
	return p.Split.Presence == Present && p.Split.Observed > 0
}

// weigh judges the traffic since the last look.
func (p *pass) weigh() {
	p.measure = true
	if p.status.Analysis == nil && len(p.Windows) == 0 && p.status.Step.ProgrammedAt == nil {
		return // it gets no traffic yet
	}
	if i := int(p.status.Step.Index); i < len(p.steps) {
		p.judge = p.judgeOf(i)
	}
	p.verdict = p.judgeWindows()
	p.failed = p.verdict.Verdict == judge.Fail
	if a := p.status.Analysis; a.LastWindowEnd != nil {
		// Once data is stale it stays so until there is a new window.
		if stale := a.LastWindowEnd.Add(p.judge.StaleAfter + time.Second); p.Now.Before(stale) {
			p.wake(stale)
		}
	}
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
		p.giveWay(former)
	}
	if p.canaryPods(p.canary) {
		p.say(v1alpha1.ReasonSuperseded, "A newer template took the canary's place: taking the old canary out.")
		p.state.progress = true
	}
	if !p.takeOutCanaries(p.canary) {
		return false
	}
	taken := p.CanaryService.Presence == Present && p.CanaryService.Revision != p.revision && !p.begun()
	return !taken || p.ensureNoCanaryTraffic()
}

// giveWay forgets a release whose version was replaced, and closes it if it has not
// ended already. One that never began leaves no trace.
func (p *pass) giveWay(former *v1alpha1.VersionStatus) {
	defer p.forgetRelease()
	if !p.begun() || p.decided(v1alpha1.ActionRollBack) {
		return
	}
	why := "A newer template took its place."
	if p.delegated() {
		why = "Other content took its place."
	}
	p.tellOutcome(v1alpha1.NotifySuperseded, why)
	p.close(v1alpha1.OutcomeSuperseded, former.Revision, why)
	p.note(false, v1alpha1.ReasonSuperseded, "Revision %s gives way to the newer revision %s", former.Revision, p.revision)
}

// enter records what is to be released.
func (p *pass) enter() {
	if p.status.Canary == nil {
		p.status.Canary = &v1alpha1.VersionStatus{Revision: p.revision}
		p.enterStep(0)
	}
}

// begin starts the release as soon as nothing is in its way.
func (p *pass) begin() bool {
	if p.status.Step == nil { // the steps were edited, and all of them are higher
		if !p.ensureNoCanaryTraffic() || !p.ensureNoCanaryShare() {
			return false
		}
		p.enterStep(0)
	}
	if p.begun() {
		return true
	}
	back := p.inRollbackWindow()
	if !back && p.settling() {
		return false
	}
	if !back && !p.gate(0, p.status.Step.StartedAt.Time) {
		return false
	}
	started := metav1.NewTime(p.Now)
	p.status.Canary.StartedAt = &started
	p.note(false, "ReleaseStarted", "Revision %s is being released in %d steps", p.revision, len(p.steps))
	p.tell(v1alpha1.NotifyStarted, fmt.Sprintf("Revision %s is being released in %d steps.", p.revision, len(p.steps)))
	if back {
		p.enterStep(len(p.steps))
		p.decidePromotion(reasonRollbackWindow, becauseReturning)
	}
	return true
}

// ensureNoCanaryShare is what ensureNoCanaryTraffic is where pods are the traffic.
func (p *pass) ensureNoCanaryShare() bool {
	c := p.canary
	if !p.byReplicas || c == nil || c.gone() {
		return true
	}
	if c.Replicas > 0 {
		p.do(ScaleReplicaSet{Target: target(c), Replicas: 0, Desired: p.Workload.Replicas})
	}
	p.say(v1alpha1.ReasonPreparing, "The steps were edited, and all of them are higher: taking the canary's pods out before the first one.")
	p.state.progress = true
	return false
}

// enterStep moves to a step; the weight and the hold of the step before stay in
// effect until this one's weight is.
func (p *pass) enterStep(i int) {
	r := Route{Weight: fullWeight}
	if i < len(p.steps) {
		r = p.steps[i].Route
	}
	p.status.Step = &v1alpha1.StepStatus{
		Index: int32(i), Of: int32(len(p.steps)), Summary: p.summary(i), //nolint:gosec // at most 100 steps
		Weight: r.Weight, Matches: r.Matches, StartedAt: p.micro(),
	}
}

func (p *pass) summary(i int) string {
	return fmt.Sprintf("%d/%d", min(i+1, len(p.steps)), len(p.steps))
}

// suspend keeps a release of a workload that was scaled to zero: there is nobody
// to answer and nothing to compare. It begins with its first step again when there
// are pods.
func (p *pass) suspend() {
	p.state.progress = true
	if s := p.status.Step; s.Index != 0 || s.PreparedAt != nil || s.ProgrammedAt != nil {
		p.enterStep(0)
	}
	if !p.ensureNoCanaryTraffic() {
		return
	}
	if p.canary != nil && p.canary.Replicas > 0 {
		p.do(ScaleReplicaSet{Target: target(p.canary), Replicas: 0, Desired: 0})
	}
	p.say(v1alpha1.ReasonWaitingForPods, "The Deployment is scaled to zero: the release of revision %s begins with its first step when there are pods again.", p.revision)
}
