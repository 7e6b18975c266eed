// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Two Services that people keep themselves are released like this:
//
//	traffic is on | and the canary's Service has            | then
//	--------------+-----------------------------------------+---------------------------------
//	stable        | no ready pods                           | it keeps all traffic
//	stable        | ready pods that were not judged         | the steps
//	stable        | ready pods that were rolled back        | it keeps all traffic
//	canary        | anything: it was promoted               | all traffic to it
//
// The split stays in place all the time, since only it says who gets the traffic.

// paired reports whether two Services are released instead of a workload.
func (p *pass) paired() bool { return p.Rollout.Spec.Services != nil }

// convergePair moves the traffic between two Services.
func (p *pass) convergePair() {
	pair := p.Rollout.Spec.Services
	p.observePair()
	switch p.status.Stable.Service {
	case pair.Canary:
		p.pairPromoted()
	case pair.Stable:
		p.releasePair()
	default:
		p.pairRenamed()
	}
}

// observePair finds the canary among what is behind the two Services.
func (p *pass) observePair() {
	pair := p.Rollout.Spec.Services
	p.revision = p.Pair.CanaryRevision
	if p.revision == "" { // what was decided about the version still holds when it comes back
		p.Pair.CanaryReady = 0
		if p.status.Canary != nil {
			p.revision = p.status.Canary.Revision
		}
	}
	p.canary = &ReplicaSet{Revision: p.revision, Owner: OwnerRollout, Current: true, Replicas: p.Pair.CanaryReady, Available: p.Pair.CanaryReady}
	if p.Pair.Missing == pair.Canary && p.begun() {
		p.canary = nil
	}
	if p.status.Stable == nil {
		p.status.Stable = &v1alpha1.VersionStatus{Revision: p.Pair.StableRevision, Service: pair.Stable}
	}
	if p.status.Stable.Service == pair.Stable {
		p.status.Stable.Revision = cmp.Or(p.Pair.StableRevision, p.status.Stable.Revision)
	}
}

// pairRenamed gives all traffic to the Service that is stable by the record, when the
// spec names two others: a release between the former two ends with that, since
// nobody would watch its weight any more.
func (p *pass) pairRenamed() {
	if former := p.status.Canary; former != nil {
		p.giveWay(former)
	}
	p.ignoreOrder()
	s := p.status.Stable
	if !p.ensureRoute(Route{}) {
		p.say(v1alpha1.ReasonConflict, "spec.services: the Service %q is stable, but not named; sending all traffic to it: %s.", s.Service, p.trafficWait(Route{}))
		p.state.stalled = true
		return
	}
	p.say(v1alpha1.ReasonConflict, "spec.services: all traffic is on the Service %q; name it as stable, and the Service of the next version as canary.", s.Service)
	p.state.stalled = true
}

// giveUpPair is convergePair of a Rollout that was refused.
func (p *pass) giveUpPair() {
	p.observePair()
	switch p.status.Stable.Service {
	case p.Rollout.Spec.Services.Canary: // it was promoted, and nothing is in progress
	case p.Rollout.Spec.Services.Stable:
		if former := p.status.Canary; former != nil && former.Revision != p.revision {
			p.giveWay(former)
		}
		p.withdrawPair()
	default:
		p.pairRenamed()
	}
}

func (p *pass) withdrawPair() {
	switch {
	case p.decided(v1alpha1.ActionRollBack):
		p.pairRolledBack()
	case p.aborted(), p.begun() && p.condemned(), p.ungoverned():
	case p.begun():
		p.stay()
	default:
		p.ensureRoute(Route{})
	}
}

// pairPromoted keeps all traffic on the promoted Service.
func (p *pass) pairPromoted() {
	s := p.status.Stable
	s.Revision = cmp.Or(p.revision, s.Revision)
	if former := p.status.Canary; former != nil { // the Services were swapped in the middle
		p.giveWay(former)
	}
	p.ignoreOrder()
	if !p.ensureRoute(Route{Weight: fullWeight}) {
		p.say(v1alpha1.ReasonWaitingForTraffic, "Sending all traffic to the Service %q: %s.", s.Service, p.trafficWait(Route{Weight: fullWeight}))
		p.state.progress = true
		return
	}
	p.say(v1alpha1.ReasonStable, "The Service %q was promoted and has all traffic. For the next version, name it as spec.services.stable and another Service as canary.", s.Service)
	p.state.ready = true
}

// releasePair carries the pods behind the canary's Service through the steps.
func (p *pass) releasePair() {
	if former := p.status.Canary; former != nil && former.Revision != p.revision { // others took their place
		p.giveWay(former)
	}
	if p.decided(v1alpha1.ActionRollBack) {
		p.pairRolledBack()
		return
	}
	if !p.begun() && (!p.pairIdle() || p.Pair.CanaryReady == 0) {
		return
	}
	if !p.heed() || !p.restored() {
		return
	}
	p.state.progress = true
	if p.decided(v1alpha1.ActionPromote) {
		p.promotePair()
		return
	}
	p.step()
}

// pairIdle keeps all traffic on stable while there is nothing to release, and
// reports whether it is there.
func (p *pass) pairIdle() bool {
	if !p.ensureRoute(Route{}) {
		p.say(v1alpha1.ReasonPreparing, "Putting the traffic of the Service %q under control: %s.", p.Rollout.Spec.Service, p.trafficWait(Route{}))
		p.state.progress = true
		return false
	}
	if p.Pair.CanaryReady == 0 {
		p.ignoreOrder()
		p.say(v1alpha1.ReasonStable, "The Service %q has all traffic; the Service %q has no ready pods to release.", p.Rollout.Spec.Services.Stable, p.Rollout.Spec.Services.Canary)
		p.state.ready = p.Pair.Missing == "" || p.Pair.Missing == p.Rollout.Spec.Services.Canary
	}
	return true
}

// pairReady reports whether somebody can answer behind the canary's Service.
func (p *pass) pairReady() bool {
	if p.Pair.CanaryReady > 0 {
		return true
	}
	p.say(v1alpha1.ReasonWaitingForPods, "Step %s: the Service %q has no ready pods.", p.status.Step.Summary, p.Rollout.Spec.Services.Canary)
	return false
}

// promotePair gives the canary's Service all traffic for good.
func (p *pass) promotePair() {
	all := Route{Weight: fullWeight}
	if !p.prepared(all, 0) {
		return
	}
	if !p.pairReady() || !p.ensureRoute(all) {
		p.say(v1alpha1.ReasonPromoting, "Promoting: waiting until all traffic goes to the Service %q: %s.", p.Rollout.Spec.Services.Canary, p.trafficWait(all))
		p.checkDeadline()
		return
	}
	message := p.status.Decision.Message
	p.tellOutcome(v1alpha1.NotifyPromoted, message)
	p.close(v1alpha1.OutcomePromoted, p.revision, message)
	p.note(false, "Promoted", "The Service %q (revision %s) has all traffic now", p.Rollout.Spec.Services.Canary, p.revision)
	p.forgetRelease()
	p.status.Stable = &v1alpha1.VersionStatus{Revision: p.revision, Service: p.Rollout.Spec.Services.Canary}
	p.state, p.measure = state{}, false
	p.pairPromoted()
}

// pairRolledBack keeps all traffic on stable until other pods are behind the
// canary's Service.
func (p *pass) pairRolledBack() {
	d := p.status.Decision
	p.state = state{}
	if !p.fade() || !p.ensureNoCanaryTraffic() {
		p.state.reason = v1alpha1.ReasonRollingBack
		p.state.message = shorten(fmt.Sprintf("Rolling back revision %s (%s). %s", d.Revision, d.Message, p.state.message))
		p.state.progress = true
		return
	}
	p.status.Step = nil
	if p.refusal == nil && p.retried() {
		return
	}
	p.say(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. The Service %q has all traffic; put other pods behind %q to go on.", d.Revision, d.Message, p.Rollout.Spec.Services.Stable, p.Rollout.Spec.Services.Canary)
	p.state.stalled = true
}

// reportPair notes how many pods can answer behind the Service of a version.
func (p *pass) reportPair(v *v1alpha1.VersionStatus) {
	ready := p.Pair.StableReady
	if v.Service == p.Rollout.Spec.Services.Canary || v == p.status.Canary {
		ready = p.Pair.CanaryReady
	}
	v.Replicas, v.Ready = ready, ready
}
