// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// stable is the version of a workload that requests go to beside the canary: of those that
// its Deployment has, the one with most available pods, since that may have been rolled out
// past Serin. Of two with the same number it stays the one that the Services select.
func (p *pass) stable(w *Workload) *ReplicaSet {
	pinned := map[string]bool{}
	for _, s := range p.servicesOf(w.Name) {
		pinned[s.Stable.Revision] = s.Stable.Presence == Present && s.Stable.Ours
	}
	var best *ReplicaSet
	rank := func(r *ReplicaSet) int64 {
		n := int64(r.Available) * 4
		if pinned[r.Revision] {
			n += 2
		}
		if r.Current {
			n++
		}
		return n
	}
	for i := range w.ReplicaSets {
		r := &w.ReplicaSets[i]
		if r.Owner != OwnerDeployment || r.Marked || r.Deleting {
			continue
		}
		if best == nil || rank(r) > rank(best) {
			best = r
		}
	}
	return best
}

// follow has the Service of stable select that version.
func (p *pass) follow(s *Service, stable *ReplicaSet) (current bool) {
	if stable == nil || s.Presence != Present {
		return false
	}
	if b := s.Stable; b.Presence == Present && b.Ours && b.Revision == stable.Revision && b.UpToDate {
		return true
	}
	p.do(ApplyBackend{Service: s.Name, Role: v1alpha1.RoleStable, Revision: stable.Revision})
	return false
}

// asked reports whether the split says what Serin wrote last for these weights.
func (s *Service) asked(w []PortWeight) bool {
	return s.Split.Requested != nil && slices.Equal(s.Split.Requested, w)
}

// route writes weights and reports whether they are in effect.
func (p *pass) route(s *Service, w []PortWeight) bool {
	if !s.asked(w) {
		p.do(ApplySplit{Service: s.Name, Weights: w})
		p.wait(v1alpha1.ReasonWaitingForTraffic, "Waiting until %s of Service %s goes to the canary.", text(w), s.Name)
		return false
	}
	if s.Split.InEffect {
		return true
	}
	p.wait(v1alpha1.ReasonWaitingForTraffic, "Waiting until %s of Service %s goes to the canary: %s.", text(w), s.Name, s.Split.why())
	return false
}

// why a split is not in effect yet.
func (s Split) why() string {
	switch {
	case s.Refused != "":
		return "the router refuses the TrafficSplit: " + s.Refused
	case s.Waiting != "":
		return s.Waiting
	}
	return "the router has not confirmed it yet"
}

// led reports whether requests to a Service pass a split of this CanaryRelease.
func (s *Service) led() bool {
	sp := s.Split
	return s.Presence == Present && sp.Presence == Present && sp.Ours && !sp.Deleting && !sp.Unserved
}

// leaving reports whether a split is being deleted that requests to the Service still
// pass: they go by its last weights until the Service is given back.
func (s *Service) leaving() bool {
	return s.Presence == Present && s.Split.Presence == Present && s.Split.Ours && s.Split.Deleting
}

// lead writes the weights of a Service that a split leads, and reports whether they are in
// effect. Where no split leads it, nothing can be confirmed: the pods of both versions
// answer behind it.
//
// A deletion does not wait for ever for a router that confirms nothing: then the split
// goes first, and its weights with it, while the pods of both versions still answer.
func (p *pass) lead(s *Service, weights []PortWeight) bool {
	switch {
	case s.leaving():
		p.wait(v1alpha1.ReasonCleaningUp, "Waiting until the traffic is back at the Service %s.", s.Name)
		return false
	case !s.led():
		return true
	case !s.Split.InEffect && p.overdue():
		p.note(true, v1alpha1.ReasonDeleting, "The deletion takes longer than %s: the traffic of Service %s goes back to it without waiting for the router", patience, s.Name)
		return p.dropSplit(s)
	}
	return p.route(s, weights)
}

// withdraw sends all traffic of a workload to stable, and reports whether that is in
// effect.
func (p *pass) withdraw(w *Workload) bool {
	stable := p.stable(w)
	done := true
	for _, s := range p.servicesOf(w.Name) {
		if s.led() && stable != nil {
			p.follow(s, stable)
		}
		done = p.lead(s, even(s.Ports, 0)) && done
	}
	return done
}

// dropCanaries removes the canaries that are not kept, and reports whether none of them is
// left. A canary loses its pods only when it gets no traffic.
func (p *pass) dropCanaries(keep func(*Workload, *ReplicaSet) bool) bool {
	done := true
	for i := range p.Workloads {
		w := &p.Workloads[i]
		for j := range w.ReplicaSets {
			r := &w.ReplicaSets[j]
			if r.Owner != OwnerCanary || keep(w, r) {
				continue
			}
			done = false
			p.dropCanary(w, r)
		}
	}
	return done
}

func (p *pass) dropCanary(w *Workload, r *ReplicaSet) {
	switch {
	case r.gone() && !r.Deleting:
		p.do(DeleteReplicaSet{target(r)})
		p.wait(v1alpha1.ReasonCleaningUp, "Removing the canary's ReplicaSet %s.", r.Name)
	case r.gone():
		p.wait(v1alpha1.ReasonCleaningUp, "Waiting until the ReplicaSet %s is gone.", r.Name)
	case !p.withdraw(w):
	case r.Replicas > 0:
		p.do(ScaleReplicaSet{Target: target(r), Replicas: 0, Desired: r.Desired})
		p.wait(v1alpha1.ReasonCleaningUp, "Taking the canary's pods of Deployment %s out.", w.Name)
	default:
		p.wait(v1alpha1.ReasonCleaningUp, "Taking the canary's pods of Deployment %s out, %d are left.", w.Name, r.Existing)
	}
}

// dropServices gives the traffic of the Services that are not kept back to them, and then
// removes what was made for them. It reports whether all of that is gone.
func (p *pass) dropServices(keep func(*Service) bool) bool {
	done := true
	for i := range p.Services {
		s := &p.Services[i]
		if keep(s) {
			continue
		}
		done = p.dropSplit(s) && p.dropBackends(s) && done
	}
	return done
}

func (p *pass) dropSplit(s *Service) bool {
	sp := s.Split
	if sp.Presence != Present || !sp.Ours {
		return true
	}
	if !sp.Deleting {
		p.do(DeleteSplit{Target{Name: s.Name, UID: sp.UID, ResourceVersion: sp.ResourceVersion}})
	}
	p.wait(v1alpha1.ReasonCleaningUp, "Returning the traffic to the Service %s.", s.Name)
	return false
}

func (p *pass) dropBackends(s *Service) bool {
	done := true
	for _, b := range []struct {
		role string
		Backend
	}{{v1alpha1.RoleCanary, s.Canary}, {v1alpha1.RoleStable, s.Stable}} {
		if b.Presence != Present || !b.Ours {
			continue
		}
		done = false
		p.do(DeleteBackend{Target{Name: s.Name + "-" + b.role, UID: b.UID, ResourceVersion: b.ResourceVersion}})
		p.wait(v1alpha1.ReasonCleaningUp, "Removing the Services of the single versions of %s.", s.Name)
	}
	return done
}
