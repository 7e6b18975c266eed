// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// A CanaryRelease makes the pods and moves the traffic itself. A Rollout tells it how
// much, and how to end:
//
//	the CanaryRelease                           | then
//	--------------------------------------------+-----------------------------------------
//	does not exist, has ended, has no pods yet  | nothing to release
//	has ready pods of a content not judged yet  | the steps: weights
//	promotion decided                           | weight 100, in effect; Adopted; ended: promoted
//	rollback decided                            | less and less weight; weight 0, Deprecated; ended: rolled back
//	has other content                           | the release before gives way, at weight 0
//	is deprecated by others, or deleted         | rolled back, and nothing is written
//	is adopted by a person                      | promoted as soon as it has ended, and nothing is written
//	does not name the Rollout any more          | rolled back, and nothing can be written
//	the Rollout is deleted                      | weight 0, in effect; its fields are given up
//
// Each weight and each end names the content that it is for: to other content, changed in
// the same moment, it means nothing.

// delegated reports whether a CanaryRelease is released.
func (p *pass) delegated() bool { return p.Rollout.Spec.WorkloadRef.Kind == v1alpha1.KindCanaryRelease }

// elsewhere reports whether somebody else makes the pods of both versions.
func (p *pass) elsewhere() bool { return p.paired() || p.delegated() }

// consents reports whether the CanaryRelease names this Rollout.
func (p *pass) consents() bool {
	return p.Delegated.Presence == Present && p.Delegated.Rollout == p.Rollout.Name
}

// convergeDelegated has the CanaryRelease move the traffic.
func (p *pass) convergeDelegated() {
	if p.resumeDelegated() {
		return
	}
	if !p.begun() && !p.delegatedReady() {
		return
	}
	if !p.heed() || !p.restored() {
		return
	}
	p.state.progress = true
	if p.decided(v1alpha1.ActionPromote) {
		p.promoteDelegated()
		return
	}
	p.step()
}

// giveUpDelegated is convergeDelegated of a Rollout that was refused.
func (p *pass) giveUpDelegated() {
	switch {
	case p.resumeDelegated():
	case p.aborted(), p.begun() && p.condemned():
	case p.begun():
		p.stay()
	default:
		p.ensureRoute(Route{})
	}
}

// resumeDelegated goes on with an end that was decided, by this Rollout or by others, and
// reports whether there is one.
func (p *pass) resumeDelegated() bool {
	p.observeDelegated()
	switch {
	case p.decided(v1alpha1.ActionRollBack):
		p.delegatedRolledBack()
	case p.adopting():
		p.awaitAdoption()
	case p.begun():
		return p.endedByOthers()
	default:
		return false
	}
	return true
}

// observeDelegated takes the CanaryRelease for what is released.
func (p *pass) observeDelegated() {
	c := &p.Delegated
	p.revision = c.Revision
	if c.Presence != Present && p.status.Canary != nil {
		p.revision = p.status.Canary.Revision // it is the one that has gone
	}
	p.canary = &ReplicaSet{Revision: p.revision, Owner: OwnerRollout, Current: true, Replicas: c.Ready, Available: c.Ready}
	if s := p.status.Stable; s == nil || c.Stable != "" {
		p.status.Stable = &v1alpha1.VersionStatus{Revision: c.Stable}
	}
	if former := p.status.Canary; former != nil && former.Revision != p.revision {
		p.giveWay(former)
	}
}

// delegatedReady reports whether there is something to release, and that it gets nothing yet.
func (p *pass) delegatedReady() bool {
	c, name := &p.Delegated, p.Rollout.Spec.WorkloadRef.Name
	switch {
	case c.Presence != Present:
		p.rest("There is no CanaryRelease %q, and nothing to release.", name)
	case c.over():
		p.rest("The CanaryRelease %q has ended, %s. For the next release, delete it and create another one of that name.", name, ending(c.Decision))
	case c.Decision != nil || c.Deleting:
		p.rest("The CanaryRelease %q is ending, and nothing is released.", name)
	case c.Ready == 0:
		p.rest("The CanaryRelease %q has no ready pods to release: %s", name, c.Message)
	case !p.ensureRoute(Route{}):
		p.say(v1alpha1.ReasonPreparing, "Waiting until the CanaryRelease %q sends its canary nothing: %s.", name, p.trafficWait(Route{}))
		p.state.progress = true
	default:
		return true
	}
	return false
}

// ending is how a CanaryRelease has ended, for people.
func ending(d *v1alpha1.CanaryDecision) string { return strings.ToLower(string(d.Transition)) }

// rest says why there is nothing to release.
func (p *pass) rest(format string, args ...any) {
	p.ignoreOrder()
	p.status.Weight = nil
	p.say(v1alpha1.ReasonStable, format, args...)
	p.state.ready = true
}

// adopting reports whether the CanaryRelease was told to make its canary the release.
func (p *pass) adopting() bool {
	return p.decided(v1alpha1.ActionPromote) && p.status.Decision.HandedOver
}

// endedByOthers closes a release that somebody else ended.
func (p *pass) endedByOthers() bool {
	c, name := &p.Delegated, p.Rollout.Spec.WorkloadRef.Name
	switch d := c.Decision; {
	case c.Presence != Present:
		p.reject(v1alpha1.ReasonDeprecated, fmt.Sprintf("the CanaryRelease %q was deleted", name))
	case d != nil && d.Transition == v1alpha1.CanaryTransitionDeprecated:
		p.reject(v1alpha1.ReasonDeprecated, fmt.Sprintf("the CanaryRelease %q was deprecated: %s", name, d.Message))
	case d == nil && c.Deleting:
		p.say(v1alpha1.ReasonRollingBack, "The CanaryRelease %q is being deleted.", name)
		p.state.progress = true
	case d == nil && !p.consents():
		p.reject(v1alpha1.ReasonConflict, p.withoutConsent())
	case d != nil && d.EndedAt != nil:
		p.decidePromotion(reasonPromotedFully, "the CanaryRelease was adopted: "+d.Message)
		p.delegatedPromoted()
	case d != nil:
		p.say(v1alpha1.ReasonPromoting, "The CanaryRelease %q is being adopted by others, and nothing is judged any more: %s", name, c.Message)
		p.state.progress = true
	default:
		return false
	}
	return true
}

// promoteDelegated gives the canary all traffic, and then has it adopted.
func (p *pass) promoteDelegated() {
	all := Route{Weight: fullWeight}
	if !p.prepared(all, 0) {
		return
	}
	if !p.delegatedPods() || !p.ensureRoute(all) {
		p.say(v1alpha1.ReasonPromoting, "Promoting: waiting until the CanaryRelease sends all traffic to the canary: %s.", p.trafficWait(all))
		p.checkDeadline()
		return
	}
	p.status.Decision.HandedOver = true
	p.measure = false
	p.awaitAdoption()
}

// awaitAdoption has the CanaryRelease adopted, and waits until it has ended. What the
// traffic says by now comes too late: the Helm release may have been upgraded.
func (p *pass) awaitAdoption() {
	c, name := &p.Delegated, p.Rollout.Spec.WorkloadRef.Name
	p.state.progress = true
	switch d := c.Decision; {
	case c.Presence != Present:
		p.reject(v1alpha1.ReasonDeprecated, fmt.Sprintf("the CanaryRelease %q was deleted before it said that it was adopted; see `helm history`", name))
		return
	case d != nil && d.Transition == v1alpha1.CanaryTransitionDeprecated:
		p.reject(v1alpha1.ReasonDeprecated, fmt.Sprintf("the CanaryRelease %q was deprecated: %s", name, d.Message))
		return
	case d != nil && d.EndedAt != nil:
		p.delegatedPromoted()
		return
	case d == nil && !p.consents():
		p.reject(v1alpha1.ReasonConflict, p.withoutConsent())
		return
	}
	p.tooLate()
	p.end(fullWeight, v1alpha1.CanaryTransitionAdopted)
	p.say(v1alpha1.ReasonPromoting, "Promoting: the CanaryRelease %q is being adopted. %s", name, c.Message)
}

func (p *pass) withoutConsent() string {
	return fmt.Sprintf("spec.delegation of the CanaryRelease %q does not name this Rollout any more", p.Rollout.Spec.WorkloadRef.Name)
}

// tooLate declines what a person decides about a release that is being adopted.
func (p *pass) tooLate() {
	if c := p.order(); c != nil {
		p.status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: p.micro()}
		p.decline("the CanaryRelease is being adopted already; to go back, set its spec.transition to Deprecated")
	}
}

// end tells the CanaryRelease how to end, once.
func (p *pass) end(weight int32, t v1alpha1.CanaryTransition) {
	p.status.Weight = &v1alpha1.WeightStatus{Requested: weight}
	if w := p.Rollout.Status.Weight; w != nil && w.Requested == weight {
		p.status.Weight = w.DeepCopy()
	}
	if p.consents() && p.Delegated.Decision == nil && (p.Delegated.Transition != t || p.Split.Requested.Weight != weight) {
		p.do(SetDelegation{Weight: weight, Transition: t})
	}
}

// delegatedPromoted closes the release: the Helm release is what the canary was.
func (p *pass) delegatedPromoted() {
	message := p.status.Decision.Message
	p.tellOutcome(v1alpha1.NotifyPromoted, message)
	p.close(v1alpha1.OutcomePromoted, p.revision, message)
	p.note(false, "Promoted", "The CanaryRelease %q (revision %s) was adopted", p.Rollout.Spec.WorkloadRef.Name, p.revision)
	p.forgetRelease()
	p.state, p.measure = state{}, false
	p.delegatedReady()
}

// delegatedRolledBack has the CanaryRelease take its canary out, and stays there until it
// has other content, or another one takes its place.
func (p *pass) delegatedRolledBack() {
	d, c, name := p.status.Decision, &p.Delegated, p.Rollout.Spec.WorkloadRef.Name
	p.state = state{}
	switch {
	case c.Presence != Present:
		p.forgetRelease()
		p.delegatedReady()
		return
	case c.over():
		p.ignoreOrder()
		p.status.Step, p.status.Weight = nil, nil
		p.say(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. The CanaryRelease %q has ended, %s; delete it and create another one of that name to go on.", d.Revision, d.Message, name, ending(c.Decision))
		p.state.stalled = true
		return
	case c.Decision == nil && !p.consents():
		p.ignoreOrder()
		p.status.Step, p.status.Weight = nil, nil
		p.say(v1alpha1.ReasonRolledBack, "Revision %s was given up: %s.", d.Revision, d.Message)
		p.state.stalled = true
		return
	case c.Decision == nil && !c.Deleting && !p.fade():
	default:
		p.end(0, v1alpha1.CanaryTransitionDeprecated)
		p.say(v1alpha1.ReasonRollingBack, "Waiting until the CanaryRelease %q has ended. %s", name, c.Message)
	}
	p.state.reason = v1alpha1.ReasonRollingBack
	p.state.message = shorten(fmt.Sprintf("Rolling back revision %s (%s). %s", d.Revision, d.Message, p.state.message))
	p.state.progress = true
}

// delegatedPods reports whether somebody can answer behind the canary.
func (p *pass) delegatedPods() bool {
	if p.Delegated.Ready > 0 {
		return true
	}
	p.say(v1alpha1.ReasonWaitingForPods, "Step %s: the CanaryRelease %q has no ready pods.", p.status.Step.Summary, p.Rollout.Spec.WorkloadRef.Name)
	return false
}

// deleteDelegated gives up what the Rollout decides. A canary that it gave traffic loses that
// first, and an end that it asked for comes first, both for as long as the deadline.
func (p *pass) deleteDelegated() {
	p.observeDelegated()
	p.state.progress = true
	end := p.Rollout.DeletionTimestamp.Add(p.deadline)
	if p.consents() && !p.passed(end) && !p.letGo() {
		p.state.reason = v1alpha1.ReasonDeleting
		return
	}
	p.actions = nil
	p.say(v1alpha1.ReasonDeleting, "Giving the CanaryRelease %q back.", p.Rollout.Spec.WorkloadRef.Name)
	p.status.Weight, p.status.Step = nil, nil
	if p.consents() && p.Delegated.Held {
		p.do(GiveUpDelegation{})
	}
	p.do(RemoveFinalizer{})
}

// letGo reports whether the CanaryRelease needs the Rollout no more.
func (p *pass) letGo() bool {
	c, name := &p.Delegated, p.Rollout.Spec.WorkloadRef.Name
	switch {
	case c.over():
		return true
	case c.Transition != v1alpha1.CanaryTransitionNone:
		p.say(v1alpha1.ReasonDeleting, "Waiting until the CanaryRelease %q has ended. %s", name, c.Message)
		return false
	case c.Decision != nil || c.Deleting || c.Unshared || p.ensureRoute(Route{}):
		return true
	}
	p.say(v1alpha1.ReasonDeleting, "Waiting until the CanaryRelease %q sends its canary nothing: %s.", name, p.trafficWait(Route{}))
	return false
}
