// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// canaryRelease releases a CanaryRelease, which makes the pods and moves the traffic
// itself. The Rollout tells it how much, and how to end:
//
//	the CanaryRelease                           | phase        | then
//	--------------------------------------------+--------------+------------------------------
//	does not exist, has ended, has no pods yet  | Undelegated  | nothing to release
//	has ready pods of a content not judged yet  | (steps)      | the steps: weights
//	promotion decided                           | Promoting    | weight 100, in effect
//	was told to be adopted                      | Delegated    | ended: promoted
//	rollback decided                            | RolledBack   | less and less weight; Deprecated; ended
//	has other content                           | Superseded   | the release before gives way, at weight 0
//	is deprecated by others, or deleted         | EndedByOthers | rolled back, and nothing is written
//	is adopted by a user                      | EndedByOthers | promoted as soon as it has ended
//	does not name the Rollout any more          | EndedByOthers | rolled back, and nothing can be written
//	the Rollout is deleted                      | Restoring    | weight 0, in effect; its fields are given up
//
// Each weight and each end names the content that it is for: to other content, changed in
// the same moment, it means nothing.
type canaryRelease struct{}

// The phases of a CanaryRelease.
const (
	phaseUndelegated   phase = "Undelegated"
	phaseDelegated     phase = "Delegated"
	phaseEndedByOthers phase = "EndedByOthers"
)

func (t canaryRelease) observe(s *snapshot) facts {
	c := &s.Delegated
	f := facts{
		revision: c.Revision, canary: &canary{Replicas: c.Replicas, Existing: c.Replicas, Available: c.Ready}, unfit: refuseCanaryRelease(s),
		noPods: fmt.Sprintf("the CanaryRelease %q has no ready pods", s.Rollout.Spec.WorkloadRef.Name),
		place:  "spec.delegation of the CanaryRelease", writer: t,
	}
	if c.Presence != kit.Present && s.status.Canary != nil {
		f.revision = s.status.Canary.Revision // it is the one that has gone
	}
	if s.status.Stable == nil || c.Stable != "" {
		f.newStable = &v1alpha1.VersionStatus{Revision: c.Stable}
	}
	return f
}

func (canaryRelease) assess(*snapshot) phase { return phaseReleasing }

func (canaryRelease) hindrance(s *snapshot) phase {
	switch {
	case s.decided(v1alpha1.ActionPromote) && s.status.Decision.HandedOver:
		return phaseDelegated
	case s.begun() && (s.Delegated.ends() || !consents(s)):
		return phaseEndedByOthers
	case s.begun():
		return phaseReleasing
	case s.Delegated.ends(), s.refusal == nil && (!s.ready(0) || !s.routed(Route{})):
		return phaseUndelegated
	}
	return phaseReleasing
}

// ends reports whether it is gone, or is not to stay.
func (c *Delegated) ends() bool { return c.Presence != kit.Present || c.Decision != nil || c.Deleting }

func (canaryRelease) unprepared(*snapshot) phase { return phaseReleasing }

func (canaryRelease) act(d *draft, p phase) (another bool) {
	switch p {
	case phaseUndelegated:
		rest(d)
	case phaseDelegated:
		return awaitAdoption(d)
	case phaseEndedByOthers:
		return endedByOthers(d)
	case phasePromoting:
		return promoteCanaryRelease(d)
	case phaseRolledBack:
		return rollBackCanaryRelease(d)
	case phaseWithdrawn:
		d.request(Route{})
	case phaseRestoring:
		return restoreCanaryRelease(d)
	}
	return false
}

// consents reports whether the CanaryRelease names this Rollout.
func consents(s *snapshot) bool {
	return s.Delegated.Presence == kit.Present && s.Delegated.Rollout == s.Rollout.Name
}

// over reports whether it has ended, so that nobody decides about it any more.
func (c *Delegated) over() bool { return c.Decision != nil && c.Decision.EndedAt != nil }

// ending is how a CanaryRelease has ended, for people.
func ending(d *v1alpha1.CanaryDecision) string { return strings.ToLower(string(d.Transition)) }

// rest says why there is nothing to release, or that the canary has to get nothing first.
func rest(d *draft) {
	c, name := &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	nothing := func(format string, args ...any) {
		ignoreControl(d)
		d.status.Weight = nil
		d.Say(v1alpha1.ReasonStable, format, args...)
		d.State.Ready = true
	}
	switch {
	case c.Presence != kit.Present:
		nothing("There is no CanaryRelease %q, and nothing to release.", name)
	case c.over():
		nothing("The CanaryRelease %q has ended, %s. For the next release, delete it and create another one of that name.", name, ending(c.Decision))
	case c.Decision != nil || c.Deleting:
		nothing("The CanaryRelease %q is ending, and nothing is released.", name)
	case c.Ready == 0:
		nothing("The CanaryRelease %q has no ready pods to release: %s", name, c.Message)
	default:
		d.request(Route{})
		d.Wait(v1alpha1.ReasonPreparing, "Waiting until the CanaryRelease %q sends its canary nothing: %s.", name, trafficWait(&d.snapshot, Route{}))
	}
}

// endedByOthers closes a release that somebody else ended.
func endedByOthers(d *draft) (another bool) {
	c, name := &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	switch why := lostCause(&d.snapshot, "was deleted"); {
	case why != cause{}:
		reject(d, why.reason, why.message)
	case c.Decision == nil && c.Deleting:
		d.Wait(v1alpha1.ReasonRollingBack, "The CanaryRelease %q is being deleted.", name)
		return false
	case c.Decision == nil:
		reject(d, v1alpha1.ReasonConflict, withoutConsent(&d.snapshot))
	case c.over():
		decidePromotion(d, reasonPromotedFully, "the CanaryRelease was adopted: "+c.Decision.Message)
		adopted(d)
	default:
		d.Wait(v1alpha1.ReasonPromoting, "The CanaryRelease %q is being adopted by a user, and nothing is judged any more: %s", name, c.Message)
		return false
	}
	return true
}

// lostCause is why the Rollout can't make the canary stable any more; empty when it can.
func lostCause(s *snapshot, deleted string) cause {
	c, name := &s.Delegated, s.Rollout.Spec.WorkloadRef.Name
	switch d := c.Decision; {
	case c.Presence != kit.Present:
		return cause{v1alpha1.ReasonDeprecated, fmt.Sprintf("the CanaryRelease %q %s", name, deleted)}
	case d != nil && d.Transition == v1alpha1.CanaryTransitionDeprecated:
		return cause{v1alpha1.ReasonDeprecated, fmt.Sprintf("the CanaryRelease %q was deprecated: %s", name, d.Message)}
	}
	return cause{}
}

func withoutConsent(s *snapshot) string {
	return fmt.Sprintf("spec.delegation of the CanaryRelease %q does not name this Rollout any more", s.Rollout.Spec.WorkloadRef.Name)
}

// adopted closes the release: the Helm release is what the canary was.
func adopted(d *draft) {
	promoted(d, "The CanaryRelease %q (revision %s) was adopted", d.Rollout.Spec.WorkloadRef.Name, d.revision)
}

// promoteCanaryRelease gives the canary all traffic, and then has it adopted.
func promoteCanaryRelease(d *draft) (another bool) {
	all, ready := Route{Weight: fullWeight}, d.ready(0)
	if ready {
		d.request(all)
	}
	if !ready || !d.routed(all) {
		d.Say(v1alpha1.ReasonPromoting, "Promoting: waiting until the CanaryRelease sends all traffic to the canary: %s.", trafficWait(&d.snapshot, all))
		return orTooLate(d)
	}
	d.status.Decision.HandedOver = true
	d.measure = false
	return true
}

// awaitAdoption has the CanaryRelease adopted, and waits until it has ended. What the
// traffic says by now comes too late: the Helm release may have been upgraded.
func awaitAdoption(d *draft) (another bool) {
	c, name := &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	switch why := lostCause(&d.snapshot, "was deleted before it said that it was adopted; see `helm history`"); {
	case why != cause{}:
		reject(d, why.reason, why.message)
		return true
	case c.over():
		adopted(d)
		return true
	case c.Decision == nil && !consents(&d.snapshot):
		reject(d, v1alpha1.ReasonConflict, withoutConsent(&d.snapshot))
		return true
	}
	if wanted := d.control(); wanted != nil {
		d.status.Control = &v1alpha1.ControlStatus{Control: *wanted, SeenAt: d.micro()}
		decline(d, "the CanaryRelease is being adopted already; to go back, set its spec.transition to Deprecated")
	}
	endDelegated(d, fullWeight, v1alpha1.CanaryTransitionAdopted)
	d.Wait(v1alpha1.ReasonPromoting, "Promoting: the CanaryRelease %q is being adopted. %s", name, c.Message)
	return false
}

// endDelegated tells the CanaryRelease how to end, once.
func endDelegated(d *draft, weight int32, t v1alpha1.CanaryTransition) {
	d.status.Weight = &v1alpha1.WeightStatus{Requested: weight}
	if w := d.Rollout.Status.Weight; w != nil && w.Requested == weight {
		d.status.Weight = w.DeepCopy()
	}
	if consents(&d.snapshot) && d.Delegated.Decision == nil && (d.Delegated.Transition != t || d.Split.Requested.Weight != weight) {
		d.Do(SetDelegation{Weight: weight, Transition: t})
	}
}

// rollBackCanaryRelease has the CanaryRelease take its canary out, and stays there until it
// has other content, or another one takes its place.
func rollBackCanaryRelease(d *draft) (another bool) {
	decision, c, name := d.status.Decision, &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	switch {
	case c.Presence != kit.Present:
		forgetRelease(d)
		return true
	case c.over():
		ignoreControl(d)
		d.status.Step, d.status.Weight = nil, nil
		d.Stall(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. The CanaryRelease %q has ended, %s; delete it and create another one of that name to go on.", decision.Revision, decision.Message, name, ending(c.Decision))
		return false
	case c.Decision == nil && !consents(&d.snapshot):
		ignoreControl(d)
		d.status.Step, d.status.Weight = nil, nil
		d.Stall(v1alpha1.ReasonRolledBack, "Revision %s is not released any more: %s.", decision.Revision, decision.Message)
		return false
	}
	if c.Decision != nil || c.Deleting || rampDown(d) {
		endDelegated(d, 0, v1alpha1.CanaryTransitionDeprecated)
		d.Say(v1alpha1.ReasonRollingBack, "Waiting until the CanaryRelease %q has ended. %s", name, c.Message)
	}
	rollingBack(d)
	return false
}

// restoreCanaryRelease gives up what the Rollout decides. A canary that it gave traffic loses that
// first, and an end that it asked for comes first, both for as long as the deadline.
func restoreCanaryRelease(d *draft) (another bool) {
	switch {
	case d.status.Canary != nil && d.status.Canary.Revision != d.revision:
		supersede(d)
		return true
	}
	if consents(&d.snapshot) {
		over, look := d.over(d.Rollout.DeletionTimestamp.Add(d.deadline))
		d.wake(look)
		if !over && !released(d) {
			return false
		}
	}
	d.Actions = nil
	d.Wait(v1alpha1.ReasonDeleting, "Restoring the CanaryRelease %q.", d.Rollout.Spec.WorkloadRef.Name)
	d.status.Weight, d.status.Step = nil, nil
	if consents(&d.snapshot) && d.Delegated.Held {
		d.Do(ClearDelegation{})
	}
	d.Do(kit.RemoveFinalizer{})
	return false
}

// released reports whether the CanaryRelease needs the Rollout no more, and sees to it.
func released(d *draft) bool {
	c, name := &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	switch {
	case c.over():
		return true
	case c.Transition != v1alpha1.CanaryTransitionNone:
		d.Wait(v1alpha1.ReasonDeleting, "Waiting until the CanaryRelease %q has ended. %s", name, c.Message)
		return false
	case c.Decision != nil || c.Deleting || c.Unshared:
		return true
	}
	d.request(Route{})
	if d.routed(Route{}) {
		return true
	}
	d.Wait(v1alpha1.ReasonDeleting, "Waiting until the CanaryRelease %q sends its canary nothing: %s.", name, trafficWait(&d.snapshot, Route{}))
	return false
}

// write has the CanaryRelease send that much to its canary.
func (canaryRelease) write(d *draft, r Route) {
	if consents(&d.snapshot) {
		d.Do(SetDelegation{Weight: r.Weight})
	}
}

// refuseCanaryRelease says why a CanaryRelease can't be released as the spec wants.
func refuseCanaryRelease(s *snapshot) *kit.Statement {
	name, c := s.Rollout.Spec.WorkloadRef.Name, &s.Delegated
	if what := meaningless(s); what != "" {
		return refusal(v1alpha1.ReasonInvalidSpec, "%s for a CanaryRelease; remove it.", what)
	}
	switch {
	case c.Unserved:
		return refusal(v1alpha1.ReasonInvalidSpec, "spec.workloadRef: this operator serves no CanaryReleases; install it with canaryReleases.enabled.")
	case c.Presence == kit.Present && !consents(s) && !c.over():
		return refusal(v1alpha1.ReasonConflict, "spec.workloadRef: the CanaryRelease %q does not let this Rollout decide; set its spec.delegation.rollout to %q.", name, s.Rollout.Name)
	case c.Presence == kit.Present && c.Problem != "" && c.Decision == nil:
		return refusal(v1alpha1.ReasonInvalidService, "spec.service: %s.", c.Problem)
	}
	return serviceMissing(s)
}

// meaningless is the field that means nothing for a CanaryRelease, and why; "" for none.
func meaningless(s *snapshot) string {
	spec := &s.Rollout.Spec
	switch {
	case s.RouterName != v1alpha1.RouterNginx:
		return fmt.Sprintf("spec.router: nginx shares the traffic of its Services, so that %s means nothing", s.RouterName)
	case spec.Configuration != nil:
		return "spec.configuration: the chart says what its pods read, so that it means nothing"
	case spec.TrafficDistribution != nil:
		return "spec.trafficDistribution: the Services of the versions are copies of the chart's, so that it means nothing"
	case len(spec.RouteRefs) > 0:
		return "spec.routeRefs: the router nginx follows no routes, so that it means nothing"
	case spec.RollbackWindow != nil && spec.RollbackWindow.Revisions > 0:
		return "spec.rollbackWindow: `helm rollback` brings an earlier revision back, so that it means nothing"
	}
	for i := range spec.Strategy.Steps {
		if field := meaninglessIn(&spec.Strategy.Steps[i]); field != "" {
			return fmt.Sprintf("spec.strategy.steps[%d].%s: means nothing", i, field)
		}
	}
	return ""
}

func meaninglessIn(s *v1alpha1.Step) string {
	switch {
	case len(s.Matches) > 0:
		return "matches"
	case s.Mirror != nil && *s.Mirror > 0:
		return "mirror"
	case s.CanaryReplicas != nil:
		return "canaryReplicas"
	}
	return ""
}
