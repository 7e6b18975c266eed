// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	maxHistory = 20
	maxMessage = 1024
	maxIgnored = 512
	fullWeight = 100
)

// decide records the verdict on a revision. It is written before it is acted on.
func (p *pass) decide(a v1alpha1.DecisionAction, revision, reason, message string) {
	p.status.Decision = &v1alpha1.Decision{
		Revision: revision, Action: a, Reason: reason, Message: shorten(message), Time: p.micro(),
	}
	if p.Split.Presence == Present {
		p.status.Decision.Weight = max(p.Split.Observed, 0)
	}
}

// decidePromotion decides that the canary becomes stable.
func (p *pass) decidePromotion(reason, why string) {
	p.decide(v1alpha1.ActionPromote, p.revision, reason, promotedBecause(why))
	p.note(false, v1alpha1.ReasonPromoting, "Revision %s is being promoted: %s", p.revision, why)
}

func promotedBecause(why string) string { return "Promoted: " + why + "." }

// returning reports whether a version comes back that was stable not long ago:
// that is a rollback, which nothing may hold up.
func (p *pass) returning() bool {
	return p.decided(v1alpha1.ActionPromote) && p.status.Decision.Reason == reasonRollbackWindow
}

// Why a revision is promoted.
const (
	reasonPassed         = "Passed"
	reasonPromotedFully  = "PromotedFully"
	reasonRollbackWindow = "RollbackWindow"
)

// reject decides to roll back, and begins with it: the status is written first.
func (p *pass) reject(reason, why string) {
	p.decide(v1alpha1.ActionRollBack, p.revision, reason, why)
	p.tellOutcome(v1alpha1.NotifyRolledBack, why)
	p.close(v1alpha1.OutcomeRolledBack, p.revision, why)
	p.note(true, v1alpha1.ReasonRollingBack, "Revision %s is being rolled back: %s", p.revision, why)
	p.actions, p.after, p.measure = slices.DeleteFunc(p.actions, func(a Action) bool {
		_, keep := a.(AddFinalizer)
		return !keep
	}), 0, false
	p.questions = nil
	p.rolledBack()
}

// rolledBack takes the rejected canary out, and stays there until the template
// changes. It never waits for the canary to be healthy.
func (p *pass) rolledBack() {
	if p.paired() {
		p.pairRolledBack()
		return
	}
	if p.delegated() {
		p.delegatedRolledBack()
		return
	}
	d := p.status.Decision
	p.state = state{}
	if p.stable() == nil && p.stableLost() {
		return
	}
	if !p.fade() || !p.endRelease() || !p.handOff(true) {
		p.state.reason = v1alpha1.ReasonRollingBack
		p.state.message = shorten("Rolling back revision " + d.Revision + " (" + d.Message + "). " + p.state.message)
		p.state.progress = true
		return
	}
	if p.refusal == nil && p.retried() {
		return
	}
	if former := p.former(); former != nil && former.Revision == d.Revision {
		// Rejected before it was a canary: a paused Deployment that is scaled from zero
		// would bring it up again.
		p.do(ClaimCanary{target(former)})
	}
	p.say(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. Stable revision %s has all traffic; change the template to go on.", d.Revision, d.Message, p.status.Stable.Revision)
	p.state.stalled = true
}

// fadeStages is how many writes a gradual rollback takes.
const fadeStages = 10

// fade takes the canary's weight back evenly over spec.strategy.rollBackOver, and
// reports whether that is over. It never waits for the canary: one that can't
// answer loses its traffic at once.
func (p *pass) fade() bool {
	d := p.status.Decision
	asked := p.Split.Requested
	if p.rollBackOver <= 0 || d.Weight <= 0 || p.Split.Presence != Present || p.Split.Deleting ||
		asked.Weight <= 0 || len(asked.Matches) > 0 || p.canary == nil || p.canary.Available == 0 {
		return true
	}
	since := max(p.Now.Sub(d.Time.Time), 0)
	if since >= p.rollBackOver {
		return true
	}
	stage := 1 + int64(since)*fadeStages/int64(p.rollBackOver)
	target := min(asked.Weight, int32(int64(d.Weight)*(fadeStages-stage)/fadeStages)) //nolint:gosec // at most 100
	if target <= 0 {
		return true
	}
	p.wake(d.Time.Add(time.Duration(stage) * p.rollBackOver / fadeStages))
	p.ensureRoute(Route{Weight: target})
	p.say(v1alpha1.ReasonRollingBack, "%d %% of the traffic still goes to the canary, less and less until %s.", target, endTime(d.Time.Add(p.rollBackOver), p.rollBackOver))
	return false
}

// promote makes the canary ready to take the workload over, and hands it over.
// A canary that is not exactly at full scale, down to its last pod, is never
// handed over: the Deployment controller would scale both versions in proportion.
func (p *pass) promote() {
	if p.status.Step == nil {
		p.enterStep(len(p.steps))
	}
	all := Route{Weight: fullWeight}
	if !p.prepared(all, p.Workload.Replicas) {
		return
	}
	if !p.ensurePods(p.Workload.Replicas) {
		p.say(v1alpha1.ReasonPromoting, "Promoting: %s.", p.detail())
		p.checkDeadline()
		return
	}
	if !p.ensureRoute(all) {
		p.say(v1alpha1.ReasonPromoting, "Promoting: waiting until all traffic goes to the canary: %s.", p.trafficWait(all))
		p.checkDeadline()
		return
	}
	if n := p.canary.Existing; n != p.canary.Available || n != p.Workload.Replicas {
		p.say(v1alpha1.ReasonPromoting, "Promoting: the canary has %d pods and is being scaled to %d.", n, p.Workload.Replicas)
		p.checkDeadline()
		return
	}
	p.say(v1alpha1.ReasonPromoting, "Promoting: handing the canary's pods over to the Deployment.")
	p.status.Decision.HandedOver = true
	p.do(ReleaseCanary{target(p.canary)})
}

// adopt waits until the Deployment has the promoted ReplicaSet and the old pods
// are gone; then it is the stable version.
func (p *pass) adopt(r *ReplicaSet) {
	p.state.progress = true
	p.say(v1alpha1.ReasonPromoting, "Promoting: waiting for the Deployment to take the canary's pods over.")
	if p.Split.Presence == Present && !p.Split.Deleting {
		p.ensureRoute(Route{Weight: fullWeight})
	}
	if r.Owner != OwnerDeployment || !p.oldPodsGone(r) {
		return
	}
	p.revision = r.Revision
	p.tellOutcome(v1alpha1.NotifyPromoted, p.status.Decision.Message)
	p.close(v1alpha1.OutcomePromoted, r.Revision, p.status.Decision.Message)
	p.note(false, "Promoted", "Revision %s is stable now", r.Revision)
	p.record(r)
	p.state = state{}
	switch {
	case !p.Rollout.DeletionTimestamp.IsZero():
		p.delete()
	case p.refusal != nil:
		p.giveUp()
	default:
		p.converge()
	}
}

// oldPodsGone sees to it that no pod is left but those of the promoted version. Where
// a newer one was rolled out in full past Serin, those are gone themselves.
func (p *pass) oldPodsGone(promoted *ReplicaSet) bool {
	if !promoted.Current && promoted.gone() {
		return true
	}
	var left []*ReplicaSet
	for i := range p.ReplicaSets {
		if old := &p.ReplicaSets[i]; old.Owner == OwnerDeployment && old.UID != promoted.UID && !old.gone() {
			left = append(left, old)
			p.say(v1alpha1.ReasonPromoting, "Promoting: the old pods are being removed, %d are left.", old.Existing)
		}
	}
	switch {
	case len(left) == 0:
		return true
	case !promoted.Current:
		p.removeOthers(left)
	case promoted.Replicas != p.Workload.Replicas && p.Workload.Paused:
		// Scaled in this very moment: a paused Deployment would keep both versions.
		p.do(SetHold{Paused: false})
	}
	return false
}

// removeOthers takes the pods of other versions away than the promoted one, since the
// template has moved on and the Deployment controller would not do it. One that is
// not held would bring the newest version up again and again.
func (p *pass) removeOthers(others []*ReplicaSet) {
	if !p.Workload.Paused {
		p.do(SetHold{Paused: true})
		return
	}
	for _, r := range others {
		if r.Replicas > 0 {
			p.do(ScaleReplicaSet{Target: target(r), Replicas: 0, Desired: r.Desired})
		}
	}
}

// close adds an entry to the history. One revision is closed once for each release.
func (p *pass) close(outcome, revision, message string) {
	entry := v1alpha1.HistoryEntry{
		Revision: revision, Outcome: outcome, Message: shorten(message), EndedAt: metav1.NewTime(p.Now),
		Interventions: p.status.Interventions,
	}
	p.status.Interventions = nil
	if p.status.Canary != nil && p.status.Canary.StartedAt != nil {
		entry.StartedAt = p.status.Canary.StartedAt
	}
	p.status.History = append([]v1alpha1.HistoryEntry{entry}, p.status.History...)
	if limit := p.historyLimit(); len(p.status.History) > limit {
		p.status.History = p.status.History[:limit]
	}
}

func (p *pass) historyLimit() int {
	limit := defaultHistory
	if l := p.Rollout.Spec.HistoryLimit; l != nil {
		limit = int(*l)
	}
	return min(max(limit, 1), maxHistory)
}

func shorten(s string) string { return shortenTo(s, maxMessage) }

func shortenTo(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-1]) + "…"
}
