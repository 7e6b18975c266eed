// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// servicePair moves the traffic between two Services, whose pods others make:
//
//	traffic is on | and the canary's Service has            | phase    | then
//	--------------+-----------------------------------------+----------+----------------------
//	stable        | no ready pods                           | Idle     | it keeps all traffic
//	stable        | ready pods that were not judged         | (steps)  | the steps
//	stable        | ready pods that were rolled back        | RolledBack | it keeps all traffic
//	canary        | anything: it was promoted               | Promoted | all traffic to it
//	another one   | anything: the spec names two others     | Renamed  | it keeps all traffic
//
// The split stays in place all the time, since only it says who gets the traffic.
type servicePair struct{}

// The phases of a service pair.
const (
	phaseIdle     phase = "Idle"
	phasePromoted phase = "Promoted"
	phaseRenamed  phase = "Renamed"
)

func (servicePair) observe(s *snapshot) facts {
	recogniseSplit(s)
	services, lost := s.Rollout.Spec.Services, stableServiceGone(s)
	f := facts{
		revision: s.Pair.CanaryRevision, newStable: stableOf(s), stableReady: s.Pair.StableReady, unfit: refusePair(s),
		gone: s.Service.Presence == kit.Absent || lost, noPods: fmt.Sprintf("the Service %q has no ready pods", services.Canary),
		place: "the TrafficSplit", canaryEnd: services.Canary, unconfirmed: s.deleting() && lost,
		ungoverned: s.Split.Unserved && !s.RouterOffered, writer: splitWriter{},
	}
	if f.revision == "" && s.status.Canary != nil {
		f.revision = s.status.Canary.Revision // what was decided about it still holds when it comes back
	}
	if ready := s.Pair.canaryReady(); s.Pair.Missing != services.Canary || !s.begun() {
		f.canary = &canary{Replicas: ready, Existing: ready, Available: ready}
	}
	return f
}

// stableOf is which version is stable; nil once the Rollout is deleted.
func stableOf(s *snapshot) *v1alpha1.VersionStatus {
	if s.deleting() {
		return nil
	}
	name, stable := s.Rollout.Spec.Services.Stable, s.status.Stable.DeepCopy()
	if stable == nil {
		stable = &v1alpha1.VersionStatus{Service: name}
	}
	if stable.Service == name {
		stable.Revision = cmp.Or(s.Pair.StableRevision, stable.Revision)
	}
	return stable
}

// canaryReady is how many pods can answer behind the canary's Service; those of no
// revision belong to no version.
func (p Pair) canaryReady() int32 {
	if p.CanaryRevision == "" {
		return 0
	}
	return p.CanaryReady
}

func (servicePair) assess(s *snapshot) phase {
	switch s.status.Stable.Service {
	case s.Rollout.Spec.Services.Canary:
		if s.refusal != nil {
			return phaseNothing // nothing is in progress
		}
		return phasePromoted
	case s.Rollout.Spec.Services.Stable:
		return phaseReleasing
	}
	return phaseRenamed
}

func (servicePair) hindrance(s *snapshot) phase {
	if s.refusal == nil && !s.begun() && (!s.routed(Route{}) || !s.ready(0)) {
		return phaseIdle
	}
	return phaseReleasing
}

func (servicePair) unprepared(*snapshot) phase { return phaseReleasing }

func (servicePair) act(d *draft, p phase) (another bool) {
	switch p {
	case phaseIdle:
		idle(d)
	case phasePromoted:
		keepPromoted(d)
	case phaseRenamed:
		keepRenamed(d)
	case phasePromoting:
		return promotePair(d)
	case phaseRolledBack:
		rollBackPair(d)
	case phaseWithdrawn:
		d.request(Route{})
	case phaseRestoring:
		restoreService(d)
	}
	return false
}

// idle keeps all traffic on stable while there is nothing to release.
func idle(d *draft) {
	services := d.Rollout.Spec.Services
	d.request(Route{})
	if !d.routed(Route{}) {
		d.Wait(v1alpha1.ReasonPreparing, "Putting the traffic of the Service %q under control: %s.", d.Rollout.Spec.Service, trafficWait(&d.snapshot, Route{}))
		return
	}
	ignoreControl(d)
	d.Say(v1alpha1.ReasonStable, "The Service %q has all traffic; the Service %q has no ready pods to release.", services.Stable, services.Canary)
	d.State.Ready = d.Pair.Missing == "" || d.Pair.Missing == services.Canary
}

// keepPromoted keeps all traffic on the promoted Service.
func keepPromoted(d *draft) {
	s, all := d.status.Stable, Route{Weight: fullWeight}
	s.Revision = cmp.Or(d.revision, s.Revision)
	if d.status.Canary != nil { // the Services were swapped in the middle
		supersede(d)
	}
	ignoreControl(d)
	d.request(all)
	if !d.routed(all) {
		d.Wait(v1alpha1.ReasonWaitingForTraffic, "Sending all traffic to the Service %q: %s.", s.Service, trafficWait(&d.snapshot, all))
		return
	}
	d.Say(v1alpha1.ReasonStable, "The Service %q was promoted and has all traffic. For the next version, name it as spec.services.stable and another Service as canary.", s.Service)
	d.State.Ready = true
}

// keepRenamed gives all traffic to the Service that is stable by the record, when the
// spec names two others: a release between the former two ends with that, since
// nobody would watch its weight any more.
func keepRenamed(d *draft) {
	if d.status.Canary != nil {
		supersede(d)
	}
	ignoreControl(d)
	d.request(Route{})
	if !d.routed(Route{}) {
		d.Stall(v1alpha1.ReasonConflict, "spec.services: the Service %q is stable, but not named; sending all traffic to it: %s.", d.status.Stable.Service, trafficWait(&d.snapshot, Route{}))
		return
	}
	d.Stall(v1alpha1.ReasonConflict, "spec.services: all traffic is on the Service %q; name it as stable, and the Service of the next version as canary.", d.status.Stable.Service)
}

// promotePair gives the canary's Service all traffic for good.
func promotePair(d *draft) (another bool) {
	all, service := Route{Weight: fullWeight}, d.Rollout.Spec.Services.Canary
	ready := d.ready(0)
	if ready {
		d.request(all)
	}
	if !ready || !d.routed(all) {
		d.Say(v1alpha1.ReasonPromoting, "Promoting: waiting until all traffic goes to the Service %q: %s.", service, trafficWait(&d.snapshot, all))
		return orTooLate(d)
	}
	promoted(d, "The Service %q (revision %s) has all traffic now", service, d.revision)
	d.status.Stable = &v1alpha1.VersionStatus{Revision: d.revision, Service: service}
	return true
}

// rollBackPair keeps all traffic on stable until other pods are behind the
// canary's Service.
func rollBackPair(d *draft) {
	if !rampDown(d) || !stopTraffic(d) {
		rollingBack(d)
		return
	}
	d.status.Step = nil
	if retry(d) {
		return
	}
	decision, services := d.status.Decision, d.Rollout.Spec.Services
	d.Stall(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. The Service %q has all traffic; put other pods behind %q to go on.", decision.Revision, decision.Message, services.Stable, services.Canary)
}

// stableServiceGone reports whether the Service that has, or would get back, the traffic
// of a pair does not exist.
func stableServiceGone(s *snapshot) bool {
	services, stable := s.Rollout.Spec.Services, s.status.Stable
	return s.Pair.Missing == services.Stable && (stable == nil || stable.Service != services.Canary)
}

// refusePair says why a pair can't be released.
func refusePair(s *snapshot) *kit.Statement {
	if s.byReplicas {
		return refusal(v1alpha1.ReasonInvalidSpec, "spec.router: none can't move traffic between two Services; name another router.")
	}
	if why := serviceMissing(s); why != nil {
		return why
	}
	if stableServiceGone(s) {
		return refusal(v1alpha1.ReasonServiceNotFound, "spec.services.stable: the Service %q does not exist in this namespace; create it or correct the name.", s.Rollout.Spec.Services.Stable)
	}
	return splitTaken(s)
}
