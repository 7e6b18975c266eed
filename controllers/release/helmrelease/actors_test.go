// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"slices"

	"github.com/serin-dev/serin/controllers/kit"
)

// deploymentController does what that of Kubernetes does with these Deployments.
func (w *world) deploymentController() {
	for _, name := range []string{"db", "web"} {
		d := w.deps[name]
		if d == nil || d.absent {
			continue
		}
		for _, rs := range w.rss {
			if rs.dep == name && rs.owner == kit.OwnerNone {
				rs.owner = kit.OwnerDeployment
			}
		}
		current := w.newest(name)
		if current == nil && !d.paused {
			revision := fmt.Sprintf("%s-%d", name, w.next())
			current = &replicaSet{name: revision, template: d.template, revision: revision, dep: name, uid: w.next(), owner: kit.OwnerDeployment}
			w.rss = append(w.rss, current)
		}
		if d.paused {
			w.scalePaused(name, current)
		} else {
			w.roll(name, current)
		}
	}
}

// newest is the oldest ReplicaSet that has the Deployment's template: that is the one that
// the Deployment controller takes.
func (w *world) newest(name string) *replicaSet {
	for _, rs := range w.rss {
		if rs.dep == name && rs.owner == kit.OwnerDeployment && rs.template == w.deps[name].template && !rs.deleting {
			return rs
		}
	}
	return nil
}

func (w *world) others(name string, current *replicaSet) []*replicaSet {
	var out []*replicaSet
	for _, rs := range w.rss {
		if rs.dep == name && rs.owner == kit.OwnerDeployment && rs != current {
			out = append(out, rs)
		}
	}
	return out
}

// scalePaused is what is done with a paused Deployment: old ReplicaSets go when the newest
// is saturated, else what is there is scaled.
func (w *world) scalePaused(name string, current *replicaSet) {
	n := w.deps[name].replicas
	others := w.others(name, current)
	if current != nil && current.replicas == n && current.desired == n && current.available == n {
		for _, rs := range others {
			rs.replicas = 0
		}
		return
	}
	active := slices.DeleteFunc(append(slices.Clone(others), current), func(rs *replicaSet) bool { return rs == nil || rs.replicas == 0 })
	if len(active) == 1 {
		active[0].replicas, active[0].desired = n, n
	}
}

// roll brings the newest up and takes the others down by what is available.
func (w *world) roll(name string, current *replicaSet) {
	n := w.deps[name].replicas
	others := w.others(name, current)
	var old int32
	for _, rs := range others {
		old += rs.replicas
	}
	if old == 0 {
		current.replicas, current.desired = n, n
		return
	}
	current.replicas, current.desired = min(n, max(current.replicas, n+1-old)), n
	spare := current.available - n
	for _, rs := range others {
		spare += rs.available
	}
	for _, rs := range others {
		if remove := min(spare, rs.replicas); remove > 0 {
			rs.replicas, spare = rs.replicas-remove, spare-remove
		}
	}
}

// replicaSetController makes pods at once, has one get ready at a time, and removes them.
func (w *world) replicaSetController() {
	kept := w.rss[:0:0]
	for _, rs := range w.rss {
		if rs.deleting && rs.existing == 0 {
			continue
		}
		rs.existing = rs.replicas
		rs.available = min(rs.available, rs.existing)
		if rs.available < rs.existing && !w.broken[rs.template] {
			rs.available++
		}
		kept = append(kept, rs)
	}
	w.rss = kept
}

// router programs splits after a while, and restores the Service when one goes.
func (w *world) router() {
	for _, s := range w.services {
		sp := s.split
		switch {
		case sp == nil:
		case sp.deleting && sp.leads:
			sp.leads = false
		case sp.deleting:
			s.split = nil
		case s.absent, w.deaf:
		case sp.age < w.routerLag:
			sp.age++
		default:
			sp.served, sp.leads = sp.requested, true
		}
	}
}

// check holds what must always hold, after every move. The action is what was just done.
func (w *world) check(a kit.Action) {
	for _, s := range w.services {
		if !s.absent && !w.deps[s.dep].absent {
			w.checkService(s, a)
		}
	}
}

func (w *world) checkService(s *service, a kit.Action) {
	if sp := s.split; sp != nil && sp.leads {
		for _, p := range sp.served {
			if p.Weight > 0 {
				w.checkBackend(s, s.canary, p, a)
			}
			if p.Weight < fullWeight {
				w.checkBackend(s, s.stable, p, a)
			}
		}
		return
	}
	var ready int32
	for _, rs := range w.rss {
		if rs.dep != s.dep {
			continue
		}
		ready += rs.available
		if rs.owner == kit.OwnerSerin && rs.existing > 0 && !w.lossy && !w.overdue() {
			w.Fatalf("pods of the canary are behind the Service %s, which no split leads (after %v)\n%s", s.name, a, w.history())
		}
	}
	if ready == 0 {
		w.Fatalf("the Service %s has no ready pod (after %v)\n%s", s.name, a, w.history())
	}
	if n := w.deps[s.dep].replicas; w.overdue() && ready < n {
		w.Fatalf("only %d of %d pods are behind the Service %s, which was restored unconfirmed (after %v)\n%s", ready, n, s.name, a, w.history())
	}
}

// overdue reports whether a deletion may go on without the router.
func (w *world) overdue() bool {
	since := w.cr.DeletionTimestamp
	return since != nil && !w.now.Before(since.Add(routerTimeout))
}

// checkBackend wants pods where requests go to, that exist and are not about to go.
func (w *world) checkBackend(s *service, revision string, p PortWeight, a kit.Action) {
	rs := w.byRevision(revision)
	if rs == nil || rs.replicas == 0 && rs.owner == kit.OwnerSerin || rs.available == 0 && !w.broken[rs.template] {
		w.Fatalf("port %s of Service %s sends requests to revision %q, which has no pods (after %v): %+v\n%s", p.Port, s.name, revision, a, rs, w.history())
	}
}
