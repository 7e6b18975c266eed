// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Target releases a CanaryRelease, which makes the pods and moves the traffic
// itself. The Rollout sets how much, and how it ends:
//
//	the CanaryRelease                           | phase        | then
//	--------------------------------------------+--------------+------------------------------
//	does not exist, has ended, has no pods yet  | Undelegated  | nothing to release
//	has ready pods of a content not judged yet  | (steps)      | the steps: weights
//	promotion decided                           | Promoting    | weight 100, live
//	has to be adopted                           | Delegated    | ended: promoted
//	rollback decided                            | RolledBack   | less and less weight; Deprecated; ended
//	has other content                           | Superseded   | the release before ends, at weight 0
//	is deprecated by others, or deleted         | EndedByOthers | rolled back, and nothing is written
//	is adopted by a user                      | EndedByOthers | promoted as soon as it has ended
//	does not name the Rollout any more          | EndedByOthers | rolled back, and nothing can be written
//	the Rollout is deleted                      | Restoring    | weight 0, live; its fields are cleared
//
// Each weight and each end names the content that it is for: for other content, changed
// at the same time, it means nothing.
type Target struct{}

// The phases of a CanaryRelease.
const (
	phaseUndelegated   state.Phase = "Undelegated"
	phaseDelegated     state.Phase = "Delegated"
	phaseEndedByOthers state.Phase = "EndedByOthers"
)

// Observe says what is released.
func (t Target) Observe(s *state.Snapshot) state.Facts {
	c := &s.Delegated
	f := state.Facts{
		Revision: c.Revision, Canary: &state.Canary{Replicas: c.Replicas, Existing: c.Replicas, Available: c.Ready}, Unfit: refuse(s),
		NoPods: fmt.Sprintf("the CanaryRelease %q has no ready pods", s.Rollout.Spec.WorkloadRef.Name),
		Place:  "spec.delegation of the CanaryRelease", Writer: t,
	}
	if c.Presence != kit.Present && s.Status.Canary != nil {
		f.Revision = s.Status.Canary.Revision // that is the deleted one
	}
	if s.Status.Stable == nil || c.Stable != "" {
		f.NewStable = &v1alpha1.VersionStatus{Revision: c.Stable}
	}
	return f
}

// Assess finds the phase outside of a release.
func (Target) Assess(*state.Snapshot) state.Phase { return state.PhaseReleasing }

// Hindrance finds what holds a release up.
func (Target) Hindrance(s *state.Snapshot) state.Phase {
	switch {
	case s.Decided(v1alpha1.ActionPromote) && s.Status.Decision.HandedOver:
		return phaseDelegated
	case s.Begun() && (s.Delegated.Ends() || !consents(s)):
		return phaseEndedByOthers
	case s.Begun():
		return state.PhaseReleasing
	case s.Delegated.Ends(), s.Refusal == nil && (!s.Ready(0) || !s.Routed(strategy.Route{})):
		return phaseUndelegated
	}
	return state.PhaseReleasing
}

// Unprepared finds what holds its traffic up.
func (Target) Unprepared(*state.Snapshot) state.Phase { return state.PhaseReleasing }

// Act acts for a phase, and reports whether that makes another one.
func (Target) Act(d *state.Draft, p state.Phase) (another bool) {
	switch p {
	case phaseUndelegated:
		rest(d)
	case phaseDelegated:
		return awaitAdoption(d)
	case phaseEndedByOthers:
		return endedByOthers(d)
	case state.PhasePromoting:
		return promote(d)
	case state.PhaseRolledBack:
		return rollBack(d)
	case state.PhaseWithdrawn:
		d.Request(strategy.Route{})
	case state.PhaseRestoring:
		return restore(d)
	}
	return false
}

// consents reports whether the CanaryRelease names this Rollout.
func consents(s *state.Snapshot) bool {
	return s.Delegated.Presence == kit.Present && s.Delegated.Rollout == s.Rollout.Name
}

// ending is how a CanaryRelease has ended, for users.
func ending(d *v1alpha1.CanaryDecision) string { return strings.ToLower(string(d.Transition)) }

// rest says why there is nothing to release, or that the canary has to get nothing first.
func rest(d *state.Draft) {
	c, name := &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	nothing := func(format string, args ...any) {
		record.IgnoreControl(d)
		d.Status.Weight = nil
		d.Say(v1alpha1.ReasonStable, format, args...)
		d.State.Ready = true
	}
	switch {
	case c.Presence != kit.Present:
		nothing("There is no CanaryRelease %q, and nothing to release.", name)
	case c.Over():
		nothing("The CanaryRelease %q has ended, %s. For the next release, delete it and create another one with that name.", name, ending(c.Decision))
	case c.Decision != nil || c.Deleting:
		nothing("The CanaryRelease %q is ending, and nothing is released.", name)
	case c.Ready == 0:
		nothing("The CanaryRelease %q has no ready pods to release: %s", name, c.Message)
	default:
		d.Request(strategy.Route{})
		d.Wait(v1alpha1.ReasonPreparing, "Waiting until the CanaryRelease %q sends no traffic to its canary: %s.", name, routing.TrafficWait(&d.Snapshot, strategy.Route{}))
	}
}

// endedByOthers closes a release that another actor ended.
func endedByOthers(d *state.Draft) (another bool) {
	c, name := &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	switch why := lostCause(&d.Snapshot, "was deleted"); {
	case why != "":
		record.Reject(d, v1alpha1.ReasonDeprecated, why)
	case c.Decision == nil && c.Deleting:
		d.Wait(v1alpha1.ReasonRollingBack, "The CanaryRelease %q is being deleted.", name)
		return false
	case c.Decision == nil:
		record.Reject(d, v1alpha1.ReasonConflict, withoutConsent(&d.Snapshot))
	case c.Over():
		record.DecidePromotion(d, state.ReasonPromotedFully, "the CanaryRelease was adopted: "+c.Decision.Message)
		adopted(d)
	default:
		d.Wait(v1alpha1.ReasonPromoting, "A user adopts the CanaryRelease %q, so Serin no longer analyses it: %s", name, c.Message)
		return false
	}
	return true
}

// lostCause is why the Rollout can't make the canary stable any more; empty when it can.
func lostCause(s *state.Snapshot, deleted string) string {
	c, name := &s.Delegated, s.Rollout.Spec.WorkloadRef.Name
	switch d := c.Decision; {
	case c.Presence != kit.Present:
		return fmt.Sprintf("the CanaryRelease %q %s", name, deleted)
	case d != nil && d.Transition == v1alpha1.CanaryTransitionDeprecated:
		return fmt.Sprintf("the CanaryRelease %q was deprecated: %s", name, d.Message)
	}
	return ""
}

func withoutConsent(s *state.Snapshot) string {
	return fmt.Sprintf("spec.delegation of the CanaryRelease %q no longer names this Rollout", s.Rollout.Spec.WorkloadRef.Name)
}

// adopted closes the release: the Helm release is what the canary was.
func adopted(d *state.Draft) {
	record.Promoted(d, "The CanaryRelease %q (revision %s) was adopted", d.Rollout.Spec.WorkloadRef.Name, d.Revision)
}

// promote gives the canary all traffic, and then has it adopted.
func promote(d *state.Draft) (another bool) {
	all, ready := strategy.Route{Weight: strategy.FullWeight}, d.Ready(0)
	if ready {
		d.Request(all)
	}
	if !ready || !d.Routed(all) {
		d.Say(v1alpha1.ReasonPromoting, "Promoting: waiting until the CanaryRelease sends all traffic to the canary: %s.", routing.TrafficWait(&d.Snapshot, all))
		return routing.OrTooLate(d)
	}
	d.Status.Decision.HandedOver = true
	d.Measure = false
	return true
}

// awaitAdoption has the CanaryRelease adopted, and waits until it has ended. What the
// traffic says by now comes too late: the Helm release may have been upgraded.
func awaitAdoption(d *state.Draft) (another bool) {
	c, name := &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	switch why := lostCause(&d.Snapshot, "was deleted before it reported its adoption; see `helm history`"); {
	case why != "":
		record.Reject(d, v1alpha1.ReasonDeprecated, why)
		return true
	case c.Over():
		adopted(d)
		return true
	case c.Decision == nil && !consents(&d.Snapshot):
		record.Reject(d, v1alpha1.ReasonConflict, withoutConsent(&d.Snapshot))
		return true
	}
	if wanted := record.UserAction(&d.Snapshot); wanted != nil {
		d.Status.Control = &v1alpha1.ControlStatus{Control: *wanted, SeenAt: d.Micro()}
		record.Decline(d, "the CanaryRelease is being adopted already; to roll back, set its spec.transition to Deprecated")
	}
	endDelegated(d, strategy.FullWeight, v1alpha1.CanaryTransitionAdopted)
	d.Wait(v1alpha1.ReasonPromoting, "Promoting: the CanaryRelease %q is being adopted. %s", name, c.Message)
	return false
}

// endDelegated sets how the CanaryRelease ends, once.
func endDelegated(d *state.Draft, weight int32, t v1alpha1.CanaryTransition) {
	d.Status.Weight = &v1alpha1.WeightStatus{Requested: weight}
	if w := d.Rollout.Status.Weight; w != nil && w.Requested == weight {
		d.Status.Weight = w.DeepCopy()
	}
	if d.Delegated.Decision == nil && (d.Delegated.Transition != t || d.Split.Requested.Weight != weight) {
		d.Do(state.SetDelegation{Weight: weight, Transition: t})
	}
}

// rollBack has the CanaryRelease remove its canary, and stays there until it has other
// content, or another one replaces it.
func rollBack(d *state.Draft) (another bool) {
	decision, c, name := d.Status.Decision, &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	switch {
	case c.Presence != kit.Present:
		record.ForgetRelease(d)
		return true
	case c.Over():
		record.IgnoreControl(d)
		d.Status.Step, d.Status.Weight = nil, nil
		d.Stall(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. The CanaryRelease %q has ended, %s; delete it and create another one with that name to go on.", decision.Revision, decision.Message, name, ending(c.Decision))
		return false
	case c.Decision == nil && !consents(&d.Snapshot):
		record.IgnoreControl(d)
		d.Status.Step, d.Status.Weight = nil, nil
		d.Stall(v1alpha1.ReasonRolledBack, "Revision %s is no longer being released: %s.", decision.Revision, decision.Message)
		return false
	}
	if c.Decision != nil || c.Deleting || routing.RampDown(d) {
		endDelegated(d, 0, v1alpha1.CanaryTransitionDeprecated)
		d.Say(v1alpha1.ReasonRollingBack, "Waiting until the CanaryRelease %q has ended. %s", name, c.Message)
	}
	routing.RollingBack(d)
	return false
}

// Write has the CanaryRelease send that much to its canary.
func (Target) Write(d *state.Draft, r strategy.Route) {
	if consents(&d.Snapshot) {
		d.Do(state.SetDelegation{Weight: r.Weight})
	}
}
