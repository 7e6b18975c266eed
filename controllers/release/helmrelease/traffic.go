// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"math"
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// stable is the version of a workload that requests go to beside the canary: of those that
// its Deployment has, the one with most available pods, since that may have been rolled out
// past Serin. Of two with the same number it stays the one that the Services select. A canary whose
// owner was lost comes last, however many pods it has: the Deployment does not keep it.
func (s *snapshot) stable(w *Workload) *kit.ReplicaSet {
	pinned := map[string]bool{}
	for _, svc := range s.servicesOf(w.Name) {
		pinned[svc.Stable.Revision] = svc.Stable.Presence == kit.Present && svc.Stable.Ours
	}
	var best *kit.ReplicaSet
	rank := func(r *kit.ReplicaSet) int64 {
		n := int64(r.Available) * 4
		if r.Unpromoted {
			n -= math.MaxInt32 * 4
		}
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
		if r.Owner != kit.OwnerDeployment || r.Marked || r.Deleting {
			continue
		}
		if best == nil || rank(r) > rank(best) {
			best = r
		}
	}
	return best
}

// follow has the Service of stable select that version.
func follow(d *draft, s *Service, stable *kit.ReplicaSet) (current bool) {
	if stable == nil || s.Presence != kit.Present {
		return false
	}
	return versions.KeepBackend(&d.Draft, kit.Version{Service: s.Name, Role: v1alpha1.RoleStable}, &s.Stable, stable.Revision)
}

// requests reports whether the split says what Serin writes for these weights.
func (s *Service) requests(w []PortWeight) bool {
	return s.Split.Requested != nil && slices.Equal(s.Split.Requested, w)
}

// route writes weights and reports whether they are live.
func route(d *draft, s *Service, w []PortWeight) bool {
	if !s.requests(w) {
		d.Do(ApplySplit{Service: s.Name, Weights: w})
		d.Wait(v1alpha1.ReasonWaitingForTraffic, "Waiting until %s of Service %s goes to the canary.", text(w), s.Name)
		return false
	}
	if s.Split.Programmed {
		return true
	}
	d.Wait(v1alpha1.ReasonWaitingForTraffic, "Waiting until %s of Service %s goes to the canary: %s.", text(w), s.Name, s.Split.Why())
	return false
}

// led reports whether requests to a Service pass a split of this CanaryRelease.
func (s *Service) led() bool {
	sp := s.Split
	return s.Presence == kit.Present && sp.Presence == kit.Present && sp.Ours && !sp.Deleting && !sp.Unserved
}

// leaving reports whether a split is being deleted that requests to the Service still
// pass: they go by its last weights until the Service is restored.
func (s *Service) leaving() bool {
	return s.Presence == kit.Present && s.Split.Presence == kit.Present && s.Split.Ours && s.Split.Deleting
}

// lead writes the weights of a Service that a split leads, and reports whether they are
// live. Where no split leads it, nothing can be confirmed: the pods of both versions
// answer behind it.
//
// A deletion does not wait longer than routerTimeout for a router that confirms nothing: then
// it deletes the split first, while the pods of both versions still answer.
func lead(d *draft, s *Service, weights []PortWeight) bool {
	switch {
	case s.leaving():
		d.Wait(v1alpha1.ReasonCleaningUp, "Waiting until the traffic is back at the Service %s.", s.Name)
		return false
	case !s.led():
		return true
	case !s.Split.Programmed && d.overdue():
		d.Note(true, v1alpha1.ReasonDeleting, "The deletion takes longer than %s: the Service %s is restored without waiting for the router", routerTimeout, s.Name)
		return dropSplit(d, s)
	}
	return route(d, s, weights)
}

// withdraw sends all traffic of a workload to stable, and reports whether that is live.
func withdraw(d *draft, w *Workload) bool {
	stable := d.stable(w)
	done := true
	for _, s := range d.servicesOf(w.Name) {
		if s.led() && stable != nil {
			follow(d, s, stable)
		}
		done = lead(d, s, even(s.Ports, 0)) && done
	}
	return done
}

// dropCanaries removes the canaries that are not kept, and reports whether none of them is
// left. A canary loses its pods only when it gets no traffic.
func dropCanaries(d *draft, keep func(*Workload, *kit.ReplicaSet) bool) bool {
	done := true
	for i := range d.Workloads {
		w := &d.Workloads[i]
		for j := range w.ReplicaSets {
			r := &w.ReplicaSets[j]
			if r.Owner != kit.OwnerSerin || keep(w, r) {
				continue
			}
			done = false
			dropCanary(d, w, r)
		}
	}
	return done
}

func dropCanary(d *draft, w *Workload, r *kit.ReplicaSet) {
	switch {
	case r.Gone():
		d.Wait(v1alpha1.ReasonCleaningUp, "Waiting until the ReplicaSet %s is gone.", r.Name)
		versions.Delete(&d.Draft, r)
	case withdraw(d, w):
		d.Wait(v1alpha1.ReasonCleaningUp, "Removing the canary's pods of Deployment %s, %d are left.", w.Name, r.Existing)
		versions.Empty(&d.Draft, r)
	}
}

// dropServices restores the Services that are not kept, and then removes what was made for
// them. It reports whether all of that is gone.
func dropServices(d *draft, keep func(*Service) bool) bool {
	done := true
	for i := range d.Services {
		s := &d.Services[i]
		if keep(s) {
			continue
		}
		done = dropSplit(d, s) && dropBackends(d, s) && done
	}
	return done
}

func dropSplit(d *draft, s *Service) (gone bool) {
	gone = versions.DropSplit(&d.Draft, &s.Split.Split, s.Name)
	if !gone {
		d.Wait(v1alpha1.ReasonCleaningUp, "Returning the traffic to the Service %s%s.", s.Name, s.Split.Leaving())
	}
	return gone
}

func dropBackends(d *draft, s *Service) (gone bool) {
	gone = versions.DropBackends(&d.Draft, s.Name, &s.Stable, &s.Canary)
	if !gone {
		d.Wait(v1alpha1.ReasonCleaningUp, "Removing the Services of the individual versions of %s.", s.Name)
	}
	return gone
}
