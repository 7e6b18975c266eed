// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
)

// canaries are the ReplicaSets that Serin controls.
func (p *pass) canaries() []*ReplicaSet {
	var out []*ReplicaSet
	for i := range p.ReplicaSets {
		if p.ReplicaSets[i].Owner == OwnerRollout {
			out = append(out, &p.ReplicaSets[i])
		}
	}
	return out
}

// canaryPods reports whether a canary other than keep has pods.
func (p *pass) canaryPods(keep *ReplicaSet) bool {
	for _, r := range p.canaries() {
		if !r.gone() && (keep == nil || r.UID != keep.UID) {
			return true
		}
	}
	return false
}

// endRelease sends all traffic to stable, even when the canary is gone already,
// and removes every canary.
func (p *pass) endRelease() bool {
	return p.ensureNoCanaryTraffic() && p.takeOutCanaries(nil)
}

// takeOutCanaries removes every canary but keep, and reports whether they are
// gone. A canary loses its pods only after the router reports that it gets no
// traffic. The rejected revision keeps its empty ReplicaSet: by its template it
// is known again, whatever happens to names and hashes.
func (p *pass) takeOutCanaries(keep *ReplicaSet) bool {
	done := true
	for _, r := range p.canaries() {
		switch {
		case keep != nil && r.UID == keep.UID:
		case !r.gone():
			done = false
			if p.ensureNoCanaryTraffic() && r.Replicas > 0 {
				p.do(ScaleReplicaSet{Target: target(r), Replicas: 0, Desired: r.Desired})
			}
		case !p.isRejected(r) && !r.Deleting:
			p.do(DeleteReplicaSet{target(r)})
		}
	}
	if !done && p.state.reason == "" {
		p.say(v1alpha1.ReasonRollingBack, "Taking the canary's pods out.")
		p.state.progress = true
	}
	return done
}

// ensureNoCanaryTraffic writes weight 0 and reports whether it is in effect.
func (p *pass) ensureNoCanaryTraffic() bool {
	s := p.Split
	if s.Presence == Absent || !s.Ours || s.Deleting && s.Observed <= 0 || p.backendsTrade() || p.pairTraded() || p.routeless() {
		return true
	}
	if p.ensureRoute(Route{}) || p.unreachable() {
		return true
	}
	p.repairBackends()
	p.say(v1alpha1.ReasonRollingBack, "Sending all traffic to stable: %s.", p.trafficWait(Route{}))
	p.state.progress = true
	return false
}

// unreachable reports whether no request can reach a canary, although the router
// can't confirm it: there is none, and nothing ever was in effect.
func (p *pass) unreachable() bool {
	return !p.elsewhere() && p.asked(Route{}) && p.Split.Observed < 0 && !p.canaryPods(nil)
}

// backendsTrade reports whether the split's "canary" is the version that is
// stable by now: weight 0 would then take the traffic away from the good pods.
func (p *pass) backendsTrade() bool {
	return p.status.Stable != nil && p.CanaryService.Presence == Present && p.CanaryService.Revision == p.status.Stable.Revision
}

// pairTraded reports whether the Service that spec.services names as canary was
// promoted: the other one may have no pods any more.
func (p *pass) pairTraded() bool {
	return p.paired() && p.status.Stable != nil && p.status.Stable.Service == p.Rollout.Spec.Services.Canary
}

// routeless reports whether there is no traffic that could be confirmed, or nothing
// in the path that could confirm it.
func (p *pass) routeless() bool {
	return p.Service.Presence == Absent || !p.elsewhere() && p.Workload.Presence == Absent || p.Split.Unserved ||
		!p.Rollout.DeletionTimestamp.IsZero() && p.stableServiceGone()
}

// ensureRoute asks for what the canary gets and reports whether it is in effect.
func (p *pass) ensureRoute(r Route) bool {
	if p.status.Weight == nil {
		p.status.Weight = &v1alpha1.WeightStatus{}
	}
	p.status.Weight.Requested, p.status.Weight.Matches, p.status.Weight.LeftAt = r.Weight, r.Matches, nil
	if p.byReplicas {
		return true
	}
	if !p.asked(r) {
		p.route(r)
		return false
	}
	return p.Split.InEffect && p.Split.Observed == r.Weight
}

// route writes a route where it belongs.
func (p *pass) route(r Route) {
	switch {
	case !p.delegated():
		p.do(ApplySplit{r})
	case p.consents():
		p.do(SetDelegation{Weight: r.Weight})
	}
}

// lastAsked is what Serin asked the router for last, by its own record.
func (p *pass) lastAsked() Route {
	if w := p.status.Weight; w != nil {
		return Route{Weight: w.Requested, Matches: w.Matches}
	}
	return Route{}
}

// restored undoes what somebody else wrote into the split. Whatever it says, it is
// never taken for progress. Where that gives the canary more traffic, it needs what
// every growth needs: the route on record may be one that was never written, since
// the operator crashed in between.
func (p *pass) restored() bool {
	last, now := p.lastAsked(), p.Split.Requested
	if p.byReplicas || p.Split.Presence != Present || now.sameRequests(last) {
		return true
	}
	if now.Weight >= 0 && now.below(last) {
		switch {
		case !p.mayGrow():
			p.status.Step.PreparedAt = nil
			return false
		case p.canary == nil || p.canary.Available < canaryReplicas(last.Weight, p.Workload.Replicas):
			return true // the step sees to the pods first
		case p.status.Step.ProgrammedAt == nil && p.nextRoute().sameRequests(last):
			return true // it is what the step is about to write
		}
	}
	p.ensureRoute(last)
	p.say(v1alpha1.ReasonWaitingForTraffic, "Step %s: %s is not what Serin asked for last: setting it back to %s.", p.status.Step.Summary, p.written(), last.share())
	p.noteLoss()
	p.checkDeadline()
	return false
}

// written is where a route is written, for people.
func (p *pass) written() string {
	if p.delegated() {
		return "spec.delegation of the CanaryRelease"
	}
	return "the TrafficSplit"
}

// nextRoute is the route of the present step, or of the promotion.
func (p *pass) nextRoute() Route {
	if i := int(p.status.Step.Index); i < len(p.steps) && !p.decided(v1alpha1.ActionPromote) {
		return p.steps[i].Route
	}
	return Route{Weight: fullWeight}
}

// asked reports whether the router was asked for a route last.
func (p *pass) asked(r Route) bool {
	return p.Split.Presence == Present && p.Split.Requested.equal(r)
}

// trafficWait says why a route is not in effect yet.
func (p *pass) trafficWait(r Route) string {
	switch {
	case !p.asked(r):
		return "the router has not confirmed it yet"
	case p.Split.Refused != "":
		return "the router refuses the TrafficSplit: " + p.Split.Refused
	case p.Split.Waiting != "":
		return p.Split.Waiting
	}
	return "the router has not confirmed it yet"
}

// leavePath takes away the split of a release that began with another router than
// none, and reports whether it is still there. Nobody would move its weights any
// more, so all pods stay until the traffic is off it.
func (p *pass) leavePath() bool {
	if p.RouterName != v1alpha1.RouterNone || p.elsewhere() || p.Split.Presence != Present || !p.Split.Ours {
		return false
	}
	p.say(v1alpha1.ReasonCleaningUp, "The router is none by now: returning the traffic to the Service %q first.", p.Rollout.Spec.Service)
	p.state.progress = true
	if !p.Split.Deleting {
		p.do(DeleteSplit{Target{Name: p.Rollout.Name, UID: p.Split.UID, ResourceVersion: p.Split.ResourceVersion}})
	}
	return true
}

// cleanUp returns the traffic to the root Service and removes what was made for
// the release. It reports whether all of it is gone.
func (p *pass) cleanUp() bool {
	p.status.Step, p.leaving = nil, true
	if p.Split.Presence == Present && p.Split.Ours {
		p.say(v1alpha1.ReasonCleaningUp, "Returning the traffic to the Service %q.", p.Rollout.Spec.Service)
		p.state.progress = true
		if !p.Split.Deleting {
			p.do(DeleteSplit{Target{Name: p.Rollout.Name, UID: p.Split.UID, ResourceVersion: p.Split.ResourceVersion}})
		}
		return false
	}
	if p.lingers() {
		return false
	}
	gone := true
	for _, b := range []struct {
		role string
		Backend
	}{{v1alpha1.RoleCanary, p.CanaryService}, {v1alpha1.RoleStable, p.StableService}} {
		if b.Presence != Present || !b.Ours || p.paired() {
			continue
		}
		gone = false
		name := p.Rollout.Spec.Service + "-" + b.role
		p.do(DeleteBackend{Role: b.role, Target: Target{Name: name, UID: b.UID, ResourceVersion: b.ResourceVersion}})
	}
	if !gone {
		p.say(v1alpha1.ReasonCleaningUp, "Removing the Services of the single versions.")
		p.state.progress = true
		return false
	}
	p.status.Weight, p.leaving = nil, false
	return true
}

// lingers reports whether requests may still go to the Services of the versions,
// although the split is gone.
func (p *pass) lingers() bool {
	w := p.status.Weight
	if p.Linger == 0 || w == nil || p.paired() {
		return false
	}
	if w.LeftAt == nil {
		w.LeftAt = new(p.micro())
	}
	end := w.LeftAt.Add(p.Linger)
	if !p.Now.Before(end) {
		return false
	}
	p.say(v1alpha1.ReasonCleaningUp, "Keeping the Services of the single versions until what reads the TrafficSplit has seen that it is gone.")
	p.state.progress = true
	p.wake(end)
	return true
}

// handOff is cleanUp and, after it, ensureHold. What becomes of the weight is said when
// both are done.
func (p *pass) handOff(paused bool) bool {
	weight := p.status.Weight
	if !p.cleanUp() {
		return false
	}
	if p.ensureHold(paused) {
		return true
	}
	p.status.Weight, p.leaving = weight, weight != nil
	return false
}
