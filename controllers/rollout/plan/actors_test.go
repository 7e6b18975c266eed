// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// deploymentController does what sync and rolloutRolling of the real one do with
// paused Deployments, scaling and adoption.
func (w *world) deploymentController() {
	if w.dep.absent {
		return
	}
	for _, rs := range w.rss {
		if rs.owner == OwnerNone {
			rs.owner = OwnerDeployment
			w.touch(rs)
			w.say("deployment controller: adopts %s", rs.name)
		}
	}
	current := w.newest()
	if current == nil && !w.dep.paused {
		current = w.addReplicaSet(w.dep.template, "k"+w.dep.template, OwnerDeployment, 0)
	}
	var old, active []*replicaSet
	for _, rs := range w.rss {
		if rs.owner != OwnerDeployment {
			continue
		}
		if rs != current {
			old = append(old, rs)
		}
		if rs.replicas > 0 {
			active = append(active, rs)
		}
	}
	switch {
	case len(active) == 0 && current != nil:
		w.setReplicas(current, w.dep.replicas)
	case len(active) == 1 && (active[0] == current || w.dep.paused):
		w.setReplicas(active[0], w.dep.replicas)
	case current != nil && current.replicas == w.dep.replicas && current.desired == w.dep.replicas && current.available == w.dep.replicas:
		for _, rs := range old {
			w.setReplicas(rs, 0)
		}
	case w.dep.paused && len(active) > 1:
		w.t.Fatalf("the Deployment controller scales %d versions in proportion\n%s", len(active), w.tail())
	case current != nil:
		w.setReplicas(current, w.dep.replicas)
	}
}

// newest is the oldest ReplicaSet of the present template, as FindNewReplicaSet
// of the real controller has it.
func (w *world) newest() *replicaSet {
	for _, rs := range w.rss {
		if rs.owner == OwnerDeployment && rs.template == w.dep.template {
			return rs
		}
	}
	return nil
}

func (w *world) setReplicas(rs *replicaSet, n int32) {
	if rs.replicas == n && rs.desired == w.dep.replicas {
		return
	}
	rs.replicas, rs.desired = n, w.dep.replicas
	w.touch(rs)
}

func (w *world) addReplicaSet(template, revision string, owner Owner, replicas int32) *replicaSet {
	w.rv++
	rs := &replicaSet{
		name: "website-" + revision, template: template, revision: revision, owner: owner,
		uid: types.UID(fmt.Sprint("uid-", w.rv)), replicas: replicas, desired: w.dep.replicas,
	}
	w.touch(rs)
	w.rss = append(w.rss, rs)
	return rs
}

func (w *world) touch(rs *replicaSet) { w.rv++; rs.version = w.rv; w.dirty = true }

func (w *world) replicaSetController() {
	for _, rs := range w.rss {
		before := *rs
		if rs.existing != rs.replicas {
			rs.existing, rs.age = rs.replicas, 0
			rs.available = min(rs.available, rs.existing)
		} else {
			rs.age++
		}
		if rs.age >= w.podDelay && !w.broken[rs.template] {
			rs.available = rs.existing
		}
		if rs.existing > 0 {
			if uid, found := w.served[rs.template]; found && uid != rs.uid {
				w.t.Fatalf("a second roll of %s: its pods are made anew by %s\n%s", rs.template, rs.name, w.tail())
			}
			w.served[rs.template] = rs.uid
		}
		if before.existing != rs.existing || before.available != rs.available {
			w.touch(rs)
		}
	}
}

func (w *world) router() {
	s := w.split
	if s == nil {
		return
	}
	if s.lag < w.routerLag {
		s.lag++
		return
	}
	if s.deleting {
		w.split, w.dirty = nil, true
		w.say("router: traffic is back on the root Service")
		return
	}
	if s.requested.Weight < 0 {
		s.served, s.observed, s.version, w.dirty = s.generation, -1, w.rv, true
		return
	}
	if s.served != s.generation || s.observed != s.requested.Weight {
		s.served, s.observed = s.generation, s.requested.Weight
		w.rv++
		s.version, w.dirty, s.inPath = w.rv, true, true
		w.say("router: weight %d in effect", s.observed)
	}
}

// traffic makes a window every five seconds in which the weight was constant.
func (w *world) traffic() {
	s, since := w.split, w.since()
	if s == nil || since.IsZero() || s.observed != s.requested.Weight {
		w.windowFrom = time.Time{}
		return
	}
	if w.windowFrom.Before(since) {
		w.windowFrom = since
	}
	if w.now.Sub(w.windowFrom) < 5*time.Second || w.rps == 0 {
		return
	}
	n := w.rps * 5
	arm := func(role string, share int64) analysis.Arm {
		requests := n * share / 100
		return analysis.Arm{Requests: requests, Failures: requests * w.failures[w.templateOf(role)] / 100}
	}
	w.windows = append(w.windows, analysis.Window{
		Start: w.windowFrom, End: w.now, Weight: s.observed,
		Canary: arm(v1alpha1.RoleCanary, int64(s.observed)), Stable: arm(v1alpha1.RoleStable, int64(100-s.observed)),
	})
	w.windowFrom, w.dirty = w.now, true
}
