// SPDX-License-Identifier: Apache-2.0

package servicepair

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Target moves the traffic between two Services, whose pods others make:
//
//	traffic is on | and the canary's Service has            | phase    | then
//	--------------+-----------------------------------------+----------+----------------------
//	stable        | no ready pods                           | Idle     | it keeps all traffic
//	stable        | ready pods that were not judged         | (steps)  | the steps
//	stable        | ready pods that were rolled back        | RolledBack | it keeps all traffic
//	canary        | anything: it was promoted               | Promoted | all traffic to it
//	another one   | anything: the spec names two others     | Renamed  | it keeps all traffic
//	not known     | anything: the record was lost           | Unknown  | the split is waited for
//
// The split stays in place all the time, since only it says who gets the traffic. So does that of an
// earlier Rollout of the name, as after the restore of a backup: the record was lost with the status.
type Target struct{}

// The phases of a service pair.
const (
	phaseIdle     state.Phase = "Idle"
	phasePromoted state.Phase = "Promoted"
	phaseRenamed  state.Phase = "Renamed"
	phaseUnknown  state.Phase = "Unknown"
)

// splitWait is how long a Rollout without a record waits for the split, which a restore brings last.
const splitWait = 10 * time.Minute

// Observe says what is released.
func (Target) Observe(s *state.Snapshot) state.Facts {
	state.RecogniseSplit(s)
	stable := stableOf(s)
	services, lost := s.Rollout.Spec.Services, stableServiceGone(s, cmp.Or(stable, s.Status.Stable))
	if s.Split.Inherited && !s.Deleting() {
		s.Split.Requested = strategy.Route{Weight: -1} // it is written again, as this Rollout's
	}
	f := state.Facts{
		Revision: s.Pair.CanaryRevision, NewStable: stable, StableReady: s.Pair.StableReady, StableDown: s.Pair.StableReady == 0, Unfit: refuse(s, lost),
		Gone: s.Service.Presence == kit.Absent || lost, NoPods: fmt.Sprintf("the Service %q has no ready pods", services.Canary),
		Place: "the TrafficSplit", CanaryEnd: services.Canary, Unconfirmed: s.Deleting() && lost,
		Ungoverned: s.Split.Unserved && !s.RouterOffered, Writer: state.SplitWriter{},
	}
	if f.Revision == "" && s.Status.Canary != nil {
		f.Revision = s.Status.Canary.Revision // what was decided about it still holds when it comes back
	}
	if ready := s.Pair.Answering(); s.Pair.Missing != services.Canary || !s.Begun() {
		f.Canary = &state.Canary{Replicas: ready, Existing: ready, Available: ready}
	}
	return f
}

// stableOf is which version is stable; nil while that is not known, and once the Rollout is deleted.
func stableOf(s *state.Snapshot) *v1alpha1.VersionStatus {
	if s.Deleting() || awaitsSplit(s) {
		return nil
	}
	name, stable := s.Rollout.Spec.Services.Stable, s.Status.Stable.DeepCopy()
	if stable == nil {
		stable = &v1alpha1.VersionStatus{Service: firstOf(s)}
	}
	if stable.Service == name {
		stable.Revision = cmp.Or(s.Pair.StableRevision, stable.Revision)
	}
	return stable
}

// firstOf is the Service that is stable without a record: the one that the split of an earlier Rollout
// sends everything to, be it promoted or in its last step, or, where the record was lost, that alone has
// pods which are to answer.
func firstOf(s *state.Snapshot) string {
	pair, p := s.Rollout.Spec.Services, &s.Pair
	all := s.Split.Inherited && s.Split.Requested.Equal(strategy.Route{Weight: strategy.FullWeight})
	retired := lostRecord(s) && p.StableRevision == "" && p.CanaryRevision != "" && p.Missing == ""
	if all || retired {
		return pair.Canary
	}
	return pair.Stable
}

// lostRecord reports whether there was a record, which only the finalizer tells.
func lostRecord(s *state.Snapshot) bool {
	return s.Status.Stable == nil && slices.Contains(s.Rollout.Finalizers, v1alpha1.Finalizer)
}

// awaitsSplit reports whether the record was lost, and the split that says who has the traffic may still
// be restored.
func awaitsSplit(s *state.Snapshot) bool {
	return lostRecord(s) && s.Split.Presence == kit.Absent && s.Now.Before(waitsUntil(s))
}

func waitsUntil(s *state.Snapshot) time.Time { return s.Rollout.CreationTimestamp.Add(splitWait) }

// Assess finds the phase outside of a release.
func (Target) Assess(s *state.Snapshot) state.Phase {
	if awaitsSplit(s) {
		return phaseUnknown
	}
	switch s.Status.Stable.Service {
	case s.Rollout.Spec.Services.Canary:
		if s.Refusal != nil {
			return state.PhaseNothing // nothing is in progress
		}
		return phasePromoted
	case s.Rollout.Spec.Services.Stable:
		return state.PhaseReleasing
	}
	return phaseRenamed
}

// Hindrance finds what holds a release up.
func (Target) Hindrance(s *state.Snapshot) state.Phase {
	if s.Refusal == nil && !s.Begun() && (!s.Routed(strategy.Route{}) || !s.Ready(0)) {
		return phaseIdle
	}
	return state.PhaseReleasing
}

// Unprepared finds what holds its traffic up.
func (Target) Unprepared(*state.Snapshot) state.Phase { return state.PhaseReleasing }

// Act acts for a phase, and reports whether that makes another one.
func (Target) Act(d *state.Draft, p state.Phase) (another bool) {
	switch p {
	case phaseUnknown:
		d.Wait(v1alpha1.ReasonPreparing, "Waiting until %s for the TrafficSplit %q to be restored, which says which Service has the traffic.", state.EndTime(waitsUntil(&d.Snapshot), 0), d.Rollout.Name)
		d.Wake(waitsUntil(&d.Snapshot))
	case phaseIdle:
		idle(d)
	case phasePromoted:
		keepPromoted(d)
	case phaseRenamed:
		keepRenamed(d)
	case state.PhasePromoting:
		return promote(d)
	case state.PhaseRolledBack:
		rollBack(d)
	case state.PhaseWithdrawn:
		d.Request(strategy.Route{})
	case state.PhaseRestoring:
		if routing.ReturnTraffic(d, routing.StopTraffic) {
			d.Wait(v1alpha1.ReasonDeleting, "The Service %q gets its traffic without Serin.", d.Rollout.Spec.Service)
			d.Do(kit.RemoveFinalizer{})
		}
	}
	return false
}

// idle keeps all traffic on stable while there is nothing to release.
func idle(d *state.Draft) {
	services := d.Rollout.Spec.Services
	d.Request(strategy.Route{})
	if !d.Routed(strategy.Route{}) {
		d.Wait(v1alpha1.ReasonPreparing, "Taking control of the traffic of the Service %q: %s.", d.Rollout.Spec.Service, routing.TrafficWait(&d.Snapshot, strategy.Route{}))
		return
	}
	record.IgnoreControl(d)
	d.Say(v1alpha1.ReasonStable, "The Service %q has all traffic; the Service %q has no ready pods to release.", services.Stable, services.Canary)
	d.State.Ready = d.Pair.Missing == "" || d.Pair.Missing == services.Canary
}

// keepPromoted keeps all traffic on the promoted Service.
func keepPromoted(d *state.Draft) {
	s, all := d.Status.Stable, strategy.Route{Weight: strategy.FullWeight}
	s.Revision = cmp.Or(d.Revision, s.Revision)
	if d.Status.Canary != nil { // the Services were swapped in the middle
		record.Supersede(d)
	}
	record.IgnoreControl(d)
	d.Request(all)
	if !d.Routed(all) {
		d.Wait(v1alpha1.ReasonWaitingForTraffic, "Sending all traffic to the Service %q: %s.", s.Service, routing.TrafficWait(&d.Snapshot, all))
		return
	}
	d.Say(v1alpha1.ReasonStable, "The Service %q was promoted and has all traffic. For the next version, name it as spec.services.stable and another Service as canary.", s.Service)
	d.State.Ready = true
}

// keepRenamed gives all traffic to the Service that is stable by the record, when the
// spec names two others: a release between the previous two ends with that, since
// nothing would watch its weight any more.
func keepRenamed(d *state.Draft) {
	if d.Status.Canary != nil {
		record.Supersede(d)
	}
	record.IgnoreControl(d)
	d.Request(strategy.Route{})
	if !d.Routed(strategy.Route{}) {
		d.Stall(v1alpha1.ReasonConflict, "spec.services: the Service %q is stable, but not named; sending all traffic to it: %s.", d.Status.Stable.Service, routing.TrafficWait(&d.Snapshot, strategy.Route{}))
		return
	}
	d.Stall(v1alpha1.ReasonConflict, "spec.services: all traffic is on the Service %q; name it as stable, and the Service of the next version as canary.", d.Status.Stable.Service)
}

// promote gives the canary's Service all traffic for good.
func promote(d *state.Draft) (another bool) {
	all, service := strategy.Route{Weight: strategy.FullWeight}, d.Rollout.Spec.Services.Canary
	ready := d.Ready(0)
	if ready {
		d.Request(all)
	}
	if !ready || !d.Routed(all) {
		d.Say(v1alpha1.ReasonPromoting, "Promoting: waiting until all traffic goes to the Service %q: %s.", service, routing.TrafficWait(&d.Snapshot, all))
		return routing.OrTooLate(d)
	}
	record.Promoted(d, "The Service %q (revision %s) has all traffic now", service, d.Revision)
	d.Status.Stable = &v1alpha1.VersionStatus{Revision: d.Revision, Service: service}
	return true
}

// rollBack keeps all traffic on stable until other pods are behind the
// canary's Service.
func rollBack(d *state.Draft) {
	if !routing.RampDown(d) || !routing.StopTraffic(d) {
		routing.RollingBack(d)
		return
	}
	d.Status.Step = nil
	if record.Retry(d) {
		return
	}
	decision, services := d.Status.Decision, d.Rollout.Spec.Services
	d.Stall(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. The Service %q has all traffic; put other pods behind %q to go on.", decision.Revision, decision.Message, services.Stable, services.Canary)
}

// stableServiceGone reports whether the Service that has, or would get back, the traffic
// of a pair does not exist.
func stableServiceGone(s *state.Snapshot, stable *v1alpha1.VersionStatus) bool {
	services := s.Rollout.Spec.Services
	return s.Pair.Missing == services.Stable && (stable == nil || stable.Service != services.Canary)
}

// refuse says why a pair can't be released.
func refuse(s *state.Snapshot, lost bool) *kit.Statement {
	if s.RouterName == v1alpha1.RouterNone {
		return state.Refuse(v1alpha1.ReasonInvalidSpec, "spec.router: the router none can't move traffic between two Services; name another router.")
	}
	if why := state.ServiceMissing(s); why != nil {
		return why
	}
	if lost {
		return state.Refuse(v1alpha1.ReasonServiceNotFound, "spec.services.stable: the Service %q does not exist in this namespace; create it or correct the name.", s.Rollout.Spec.Services.Stable)
	}
	return state.SplitTaken(s)
}
