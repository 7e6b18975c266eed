// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
)

// What other actors change of a release's objects is put back, and never taken for
// progress:
//
//	edit                                        | then
//	--------------------------------------------+-------------------------------------------
//	weights, matches, mark of the split         | written again (restored)
//	split deleted                               | made again, and the step begins again
//	selector, ports, mark of a backend Service  | written again (prepare, repairBackends)
//	backend Service deleted                     | made again (prepare, repairBackends)
//	mark or controller of the canary            | taken back (reclaim)
//	canary deleted                              | rolled back (condemned)
//	Deployment un-paused on a rejected template | paused, and its pods taken away (pushBack)
//	Deployment un-paused during a release       | rolled out in full, said so (unguarded)
//	Deployment scaled from zero                 | another old version gives way (depose)

// recognise takes objects for ours that lost their mark in the middle of a
// release: the names were ours a moment ago, and a bad canary must not go on
// because of a missing label. They are written again.
func (p *pass) recognise() {
	if p.delegated() {
		return // nothing that it releases has a mark
	}
	if p.status.Weight == nil || !p.begun() && p.status.Stable == nil {
		return
	}
	if s := &p.Split; s.Presence == Present && !s.Ours {
		s.Ours, s.Requested = true, Route{Weight: -1}
	}
	for _, b := range []*Backend{&p.StableService, &p.CanaryService} {
		if b.Presence == Present && !b.Ours && !p.paired() {
			b.Ours, b.UpToDate = true, false
		}
	}
}

// disturbed undoes what somebody did to the pods of a release, and reports whether
// there was anything.
func (p *pass) disturbed() bool {
	slipped := p.slipped()
	switch stray := p.stray(); {
	case stray != nil:
		p.reclaim(stray)
	case slipped != nil && p.rejected():
		p.pushBack(slipped)
	case slipped != nil:
		p.unguarded(slipped)
	default:
		return false
	}
	return true
}

// stray is the canary when somebody took its mark or its controller away. The
// Deployment controller adopts one without a controller at once. Before the traffic
// was under control there was no canary: pods of its template are the Deployment's.
func (p *pass) stray() *ReplicaSet {
	if !p.begun() || p.status.Canary == nil || !p.underControl() {
		return nil
	}
	return p.find(func(r *ReplicaSet) bool {
		lost := r.Owner != OwnerRollout && !r.gone() || r.Owner == OwnerRollout && !r.Marked
		return lost && r.Revision == p.status.Canary.Revision && !r.Deleting && r.Revision != p.status.Stable.Revision
	})
}

// underControl reports whether the root Service does not select the canary's pods,
// or is meant to.
func (p *pass) underControl() bool {
	return p.byReplicas || p.Split.Presence == Present && !p.Split.Deleting && p.Split.Observed >= 0
}

// reclaim takes the canary back before anything else happens to it.
func (p *pass) reclaim(r *ReplicaSet) {
	p.say(v1alpha1.ReasonPreparing, "Taking ReplicaSet %q back, whose mark or controller somebody removed.", r.Name)
	p.state.progress = true
	p.do(ClaimCanary{target(r)})
}

// rejected reports whether the present template is the one that was rolled back:
// its empty ReplicaSet is kept to know, once it had one.
func (p *pass) rejected() bool {
	return p.decided(v1alpha1.ActionRollBack) && (p.find(p.isRejected) != nil || p.status.Decision.Revision == p.currentRevision())
}

// pushBack undoes that somebody un-paused the Deployment on a rejected template: a
// rollback sticks. One that is rolled out in full already is left alone, since
// its old pods are gone.
func (p *pass) pushBack(r *ReplicaSet) {
	if stable := p.stable(); stable == nil || stable.gone() {
		p.unguarded(r)
		return
	}
	p.say(v1alpha1.ReasonRolledBack, "Revision %s was rolled back; the Deployment was un-paused on it and is held again.", p.status.Decision.Revision)
	p.state.progress = true
	if p.ensureHold(true) && r.Replicas > 0 {
		p.do(ScaleReplicaSet{Target: target(r), Replicas: 0, Desired: r.Desired})
	}
}

// usurper is an old version that has pods although it is neither stable nor the
// template's: a paused Deployment that is scaled from zero brings up the newest of
// its old ReplicaSets, whichever is stable.
func (p *pass) usurper() *ReplicaSet {
	return p.find(func(r *ReplicaSet) bool {
		return r.Owner == OwnerDeployment && !r.Current && r.Replicas > 0 && r.Revision != p.status.Stable.Revision
	})
}

// usurped reports whether such a version is in the way of everything else.
func (p *pass) usurped(stable *ReplicaSet) bool {
	old := p.usurper()
	return old != nil && p.depose(stable, old)
}

// depose lets an old version give way to stable's pods, and reports whether that
// comes before anything else. As long as nothing is in the path, both versions answer,
// so as many pods stay as the scale wants. Stable goes ahead by a quarter, the usual
// surge, since the Deployment controller scales both in proportion beyond that.
func (p *pass) depose(stable, old *ReplicaSet) bool {
	n, first := p.Workload.Replicas, p.Split.Presence == Absent
	up, down := min(n, stable.Available+(n+3)/4), int32(0)
	if first {
		down = min(old.Replicas, max(0, n-stable.Available))
	}
	if up > stable.Replicas {
		p.do(ScaleReplicaSet{Target: target(stable), Replicas: up, Desired: n})
	}
	if down < old.Replicas {
		p.do(ScaleReplicaSet{Target: target(old), Replicas: down, Desired: n})
	}
	if first {
		p.say(v1alpha1.ReasonDeploying, "Revision %s is stable, but the Deployment came up from zero with revision %s, which gives way: %d of %d pods are available.", stable.Revision, old.Revision, stable.Available, n)
		p.state.progress = true
	}
	return first
}

// repairBackends writes the Services of the versions again when the router can't
// carry the split because of them: without that, traffic could never be taken away
// from the canary.
func (p *pass) repairBackends() {
	if p.elsewhere() {
		return
	}
	if s := p.status.Stable; s != nil {
		p.repair(v1alpha1.RoleStable, p.StableService, s.Revision)
	}
	if c := p.status.Canary; c != nil {
		p.repair(v1alpha1.RoleCanary, p.CanaryService, c.Revision)
	}
}

func (p *pass) repair(role string, b Backend, revision string) {
	bad := b.Presence == Absent || b.Presence == Present && b.Ours && (b.Revision != revision || !b.UpToDate)
	// A Service that can't be split is no model for another one.
	if bad && p.Service.Presence == Present && p.Service.Problem == "" {
		p.do(ApplyBackend{Role: role, Revision: revision})
	}
}
