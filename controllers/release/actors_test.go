// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// deploymentController does what sync and rolloutRolling of the real one do with
// paused Deployments, scaling and adoption. It surges to full scale at once.
func (w *world) deploymentController() {
	w.t.Helper()
	if w.dep.absent {
		return
	}
	adopted := false
	for _, rs := range w.rss {
		switch {
		case rs.owner != kit.OwnerNone:
		case adopted:
			return // each is a write, and it goes on when all are done
		default:
			adopted, rs.owner = true, kit.OwnerDeployment
			w.touch(rs)
			w.say("deployment controller: adopts %s", rs.name)
		}
	}
	current := w.newest()
	if current == nil && !w.dep.paused {
		current = w.addReplicaSet(w.dep.template, "k"+w.dep.template, kit.OwnerDeployment, 0)
	}
	old, active, scaling := w.versions(current)
	switch {
	case w.dep.paused || scaling:
		w.scaleDeployment(current, old, active)
	case w.saturated(current):
		for _, rs := range old {
			w.setReplicas(rs, 0)
		}
	default:
		w.setReplicas(current, w.dep.replicas)
	}
}

// versions are the Deployment's ReplicaSets other than the current one, those that
// have replicas, and whether one of them does not know the present scale.
func (w *world) versions(current *replicaSet) (old, active []*replicaSet, scaling bool) {
	for _, rs := range w.rss {
		if rs.owner != kit.OwnerDeployment {
			continue
		}
		if rs != current {
			old = append(old, rs)
		}
		if rs.replicas > 0 {
			active = append(active, rs)
			scaling = scaling || rs.desired != w.dep.replicas
		}
	}
	return old, active, scaling
}

// scaleDeployment is scale of the real one: it does not look at templates.
func (w *world) scaleDeployment(current *replicaSet, old, active []*replicaSet) {
	w.t.Helper()
	switch {
	case len(active) == 1:
		w.setReplicas(active[0], w.dep.replicas)
	case len(active) == 0 && current != nil:
		w.setReplicas(current, w.dep.replicas)
	case len(active) == 0 && len(old) > 0:
		w.setReplicas(old[len(old)-1], w.dep.replicas) // the newest, whatever it is
	case len(active) == 0:
	case current != nil && w.saturated(current):
		for _, rs := range old {
			w.setReplicas(rs, 0)
		}
	default:
		w.scaleInProportion(active)
	}
}

// scaleInProportion is what a paused Deployment does with several versions. Serin
// must never bring it about; users who scale at the wrong time can.
func (w *world) scaleInProportion(active []*replicaSet) {
	w.t.Helper()
	var total, allowed int32
	scaling, unsaturated := false, false
	for _, rs := range active {
		total += rs.replicas
		scaling = scaling || rs.desired != w.dep.replicas
		stable := w.ro.Status.Stable
		unsaturated = unsaturated || rs.template == w.dep.template && (stable == nil || rs.revision != stable.Revision)
	}
	if unsaturated && !scaling && !w.racing {
		w.t.Fatalf("the Deployment controller scales %d versions in proportion\n%s", len(active), w.tail())
	}
	if w.dep.replicas > 0 {
		allowed = w.dep.replicas + surge(w.dep.replicas)
	}
	// From the largest to the smallest, the newest first when there are to be more.
	slices.SortStableFunc(active, func(a, b *replicaSet) int { return cmp.Compare(b.replicas, a.replicas) })
	if allowed > total {
		slices.Reverse(active)
		slices.SortStableFunc(active, func(a, b *replicaSet) int { return cmp.Compare(b.replicas, a.replicas) })
	}
	sizes, left := make([]int32, len(active)), allowed-total
	for i, rs := range active {
		size := float64(rs.replicas*allowed) / float64(rs.desired+surge(rs.desired))
		more := int32(math.Round(size)) - rs.replicas
		if left >= 0 {
			more = min(more, left)
		} else {
			more = max(more, left)
		}
		sizes[i], left = rs.replicas+more, left-more
	}
	sizes[0] = max(0, sizes[0]+left)
	for i, rs := range active {
		w.setReplicas(rs, sizes[i])
	}
}

// surge is a quarter, rounded up.
func surge(replicas int32) int32 { return (replicas + 3) / 4 }

// saturated is when old versions may go.
func (w *world) saturated(rs *replicaSet) bool {
	n := w.dep.replicas
	return rs.replicas == n && rs.desired == n && rs.available == n
}

// newest is the oldest ReplicaSet of the present template, as FindNewReplicaSet
// of the real controller has it.
func (w *world) newest() *replicaSet {
	for _, rs := range w.rss {
		if rs.owner == kit.OwnerDeployment && rs.template == w.dep.template {
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

func (w *world) addReplicaSet(template, revision string, owner kit.Owner, replicas int32) *replicaSet {
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
		w.serve(rs)
		if before.existing != rs.existing || before.available != rs.available {
			w.touch(rs)
		}
	}
}

// serve notes which ReplicaSet's pods serve a template: it stays the same.
func (w *world) serve(rs *replicaSet) {
	w.t.Helper()
	if rs.existing == 0 {
		return
	}
	if uid, found := w.served[rs.template]; found && uid != rs.uid {
		w.t.Fatalf("a second roll of %s: its pods are made anew by %s\n%s", rs.template, rs.name, w.tail())
	}
	w.served[rs.template] = rs.uid
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
	if s.withdrawn && !s.deleting {
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
		s.version, w.dirty, s.cutOver = w.rv, true, true
		w.say("router: weight %d live", s.observed)
	}
}

// traffic makes a window every five seconds in which the weight was constant.
func (w *world) traffic() {
	since := w.since()
	weight, shared := w.shared()
	if !shared || since.IsZero() {
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
	arm := func(role string, share int64) analysis.Variant {
		requests := n * share / 100
		return analysis.Variant{Requests: requests, Failures: requests * w.failures[w.templateOf(role)] / 100}
	}
	next := analysis.Window{
		Start: w.windowFrom, End: w.now, Weight: weight,
		Canary: arm(v1alpha1.RoleCanary, int64(weight)), Stable: arm(v1alpha1.RoleStable, int64(100-weight)),
	}
	if w.split != nil {
		refused := n * w.refused / 100
		next.Proxies = analysis.Variant{Requests: n + refused, Failures: refused}
	}
	w.windows = append(w.windows, next)
	w.windowFrom, w.dirty = w.now, true
}

// shared is the weight by which requests are shared that something counts: by the split, or
// by the pods of both versions where a metric of the user does.
func (w *world) shared() (weight int32, counted bool) {
	switch s, wt := w.split, w.known().Weight; {
	case s != nil:
		return s.observed, s.observed == s.requested.Weight
	case w.routerName() == v1alpha1.RouterNone && w.ro.Spec.Analysis != nil && wt != nil && wt.Observed != nil:
		return *wt.Observed, true
	}
	return 0, false
}
