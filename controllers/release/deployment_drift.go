// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// What other actors change of a release's objects is put back, and never taken for
// progress:
//
//	edit                                        | phase      | then
//	--------------------------------------------+------------+--------------------------------
//	weights, matches, mark of the split         | Tampered   | written again
//	split deleted                               | SplitDeleted | made again; the step begins again
//	a backend Service edited or deleted         | Preparing  | made again (upkeep, repair)
//	mark or controller of the canary            | Reclaiming | taken back
//	canary deleted                              | Failed     | rolled back
//	Deployment un-paused on a rejected template | Unpaused   | paused, and its pods taken away
//	Deployment un-paused during a release       | Unguarded  | rolled out in full, said so
//	Deployment scaled from zero                 | Stale      | another old version gives way

// recognise takes objects for ours that lost their mark in the middle of a
// release: the names were ours a moment ago, and a bad canary must not go on
// because of a missing label. They are written again.
func recognise(s *snapshot) {
	if !recogniseSplit(s) {
		return
	}
	for _, b := range []*kit.Backend{&s.StableService, &s.CanaryService} {
		if b.Presence == kit.Present && !b.Ours {
			b.Ours, b.UpToDate = true, false
		}
	}
}

// recogniseSplit does so with the split, and reports whether there may be objects of a
// release.
func recogniseSplit(s *snapshot) bool {
	if s.status.Weight == nil || !s.begun() && s.status.Stable == nil {
		return false
	}
	if split := &s.Split; split.Presence == kit.Present && !split.Ours {
		split.Ours, split.Requested = true, Route{Weight: -1}
	}
	return true
}

// assessDrift finds out what others did to the pods of a release.
func assessDrift(s *snapshot) phase {
	switch {
	case stray(s) != nil:
		return phaseReclaiming
	case slipped(s) != nil && templateRejected(s) && s.stable() != nil && !s.stable().Gone():
		return phaseUnpaused
	case slipped(s) != nil:
		return phaseUnguarded
	case stale(s) != nil && s.Split.Presence == kit.Absent:
		return phaseStale
	}
	return phaseReleasing
}

func actOnDrift(d *draft, p phase) (another bool) {
	switch p {
	case phaseReclaiming:
		r := stray(&d.snapshot)
		d.Wait(v1alpha1.ReasonPreparing, "Restoring ReplicaSet %q, whose mark or controller another actor removed.", r.Name)
		d.Do(AdoptCanary{r.Object})
	case phaseUnpaused:
		pushBack(d, slipped(&d.snapshot))
	case phaseUnguarded:
		return rollOutUnguarded(d, slipped(&d.snapshot))
	case phaseStale:
		old, stable := stale(&d.snapshot), d.stable()
		yield(d)
		d.Wait(v1alpha1.ReasonDeploying, "Revision %s is stable, but the Deployment came up from zero with revision %s, which is scaled down: %d of %d pods are available.", stable.Revision, old.Revision, stable.Available, d.Workload.Replicas)
	}
	return false
}

// stray is the canary when somebody took its mark or its controller away. The
// Deployment controller adopts one without a controller at once. Before the traffic
// was under control there was no canary: pods of its template are the Deployment's.
func stray(s *snapshot) *kit.ReplicaSet {
	if !s.begun() || !underControl(s) {
		return nil
	}
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		lost := r.Owner != kit.OwnerSerin && !r.Gone() || r.Owner == kit.OwnerSerin && !r.Marked
		return lost && r.Revision == s.status.Canary.Revision && !r.Deleting && r.Revision != s.status.Stable.Revision
	})
}

// underControl reports whether the root Service does not select the canary's pods,
// or is meant to.
func underControl(s *snapshot) bool {
	return s.byReplicas || s.Split.Presence == kit.Present && !s.Split.Deleting && s.Split.Observed >= 0
}

// slipped is a ReplicaSet that the Deployment controller brought up past Serin:
// the template was changed while nothing held the Deployment.
func slipped(s *snapshot) *kit.ReplicaSet {
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && r.Current && !r.Gone() && r.Revision != s.status.Stable.Revision
	})
}

// templateRejected reports whether the present template is the one that was rolled back:
// its empty ReplicaSet is kept to know, once it had one.
func templateRejected(s *snapshot) bool {
	return s.decided(v1alpha1.ActionRollBack) &&
		(s.replicaSet(func(r *kit.ReplicaSet) bool { return isRejected(s, r) }) != nil || s.status.Decision.Revision == templateRevision(s))
}

// pushBack undoes that somebody un-paused the Deployment on a rejected template: a
// rollback sticks. One that is rolled out in full already is left alone, since
// its old pods are gone.
func pushBack(d *draft, r *kit.ReplicaSet) {
	d.Wait(v1alpha1.ReasonRolledBack, "Revision %s was rolled back; the Deployment was un-paused on it and is paused again.", d.status.Decision.Revision)
	switch {
	case !paused(&d.snapshot, true):
		pause(d, true)
	default:
		versions.Empty(&d.Draft, r)
	}
}

// rollOutUnguarded lets a version that the Deployment controller already rolls out past
// Serin come up in full, and calls it stable then: to stop it half way would
// leave users with two versions. A canary is taken out first.
func rollOutUnguarded(d *draft, r *kit.ReplicaSet) (another bool) {
	switch {
	case d.Split.Presence == kit.Absent && !d.canaryPods(nil):
	case !paused(&d.snapshot, true):
		pause(d, true)
		return false
	default:
		if endRelease(d) {
			cleanUp(d)
		}
		return false
	}
	if !d.Workload.Settled {
		letRoll(d, "Revision %s is being rolled out past Serin, without steps: %d of %d pods are available.", r.Revision, d.Workload.Available, d.Workload.Replicas)
		d.State.Reason = v1alpha1.ReasonUnguardedChange
		return false
	}
	d.Note(true, v1alpha1.ReasonUnguardedChange, "Revision %s was rolled out past Serin, without steps, since nothing held the Deployment when its template changed", r.Revision)
	deployed(d, r, "Rolled out past Serin.")
	return true
}

// stale is an old version that has pods although it is neither stable nor the
// template's: a paused Deployment that is scaled from zero brings up the newest of
// its old ReplicaSets, whichever is stable.
func stale(s *snapshot) *kit.ReplicaSet {
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && !r.Current && r.Replicas > 0 && r.Revision != s.status.Stable.Revision
	})
}

// yield lets a stale version give way to stable's pods. As long as there is no split,
// both versions answer, so as many pods stay as the scale wants. Stable goes ahead by a
// quarter, the usual surge, since the Deployment controller scales both in proportion
// beyond that.
func yield(d *draft) {
	stable := d.stable()
	if stable == nil {
		return
	}
	old := stale(&d.snapshot)
	if old == nil {
		return
	}
	n := d.Workload.Replicas
	up, down := min(n, stable.Available+(n+3)/4), int32(0)
	if d.Split.Presence == kit.Absent {
		down = min(old.Replicas, max(0, n-stable.Available))
	}
	if up > stable.Replicas {
		d.Do(kit.ScaleReplicaSet{Object: stable.Object, Replicas: up, Desired: n})
	}
	if down < old.Replicas {
		d.Do(kit.ScaleReplicaSet{Object: old.Object, Replicas: down, Desired: n})
	}
}

// tidy lets a stale version give way and deletes canaries without pods.
func (deployment) tidy(d *draft) {
	yield(d)
	keep := canaryOf(&d.snapshot)
	for i := range d.ReplicaSets {
		if r := &d.ReplicaSets[i]; r.Owner == kit.OwnerSerin && r.Gone() && (keep == nil || r.UID != keep.UID) {
			removeEmpty(d, r)
		}
	}
}

// keepBackends writes the Services of the versions that are not what they are to be.
func (deployment) keepBackends(d *draft) {
	if d.byReplicas || d.stable() == nil {
		return
	}
	versions.KeepBackend(&d.Draft, kit.Version{Role: v1alpha1.RoleStable}, &d.StableService, d.status.Stable.Revision)
	versions.KeepBackend(&d.Draft, kit.Version{Role: v1alpha1.RoleCanary}, &d.CanaryService, d.revision)
}

// repairBackends writes the Services of the versions again when the router can't
// carry the split because of them: without that, traffic could never be taken away
// from the canary.
func (deployment) repairBackends(d *draft) {
	if s := d.status.Stable; s != nil {
		repairBackend(d, v1alpha1.RoleStable, d.StableService, s.Revision)
	}
	if c := d.status.Canary; c != nil {
		repairBackend(d, v1alpha1.RoleCanary, d.CanaryService, c.Revision)
	}
}

func repairBackend(d *draft, role string, b kit.Backend, revision string) {
	bad := b.Presence == kit.Absent || b.Presence == kit.Present && b.Ours && (b.Revision != revision || !b.UpToDate)
	// A Service that can't be split is no model for another one.
	if bad && d.Service.Presence == kit.Present && d.Service.Problem == "" {
		d.Do(kit.ApplyBackend{Version: kit.Version{Role: role}, Revision: revision})
	}
}

// removeBackends deletes the Services of the versions, once requests can't go to them any
// more.
func (deployment) removeBackends(d *draft) (done bool) {
	if drains(d) {
		return false
	}
	done = versions.DropBackends(&d.Draft, "", &d.StableService, &d.CanaryService)
	if !done {
		d.Wait(v1alpha1.ReasonCleaningUp, "Removing the Services of the single versions.")
	}
	return done
}

// drains waits while requests may still go to the Services of the versions, although the
// split is gone, and reports whether it does.
func drains(d *draft) bool {
	w := d.status.Weight
	if d.Linger == 0 || w == nil {
		return false
	}
	if w.LeftAt == nil {
		w.LeftAt = new(d.micro())
	}
	end := w.LeftAt.Add(d.Linger)
	if !d.Now.Before(end) {
		return false
	}
	d.Wait(v1alpha1.ReasonCleaningUp, "Keeping the Services of the single versions until what reads the TrafficSplit has seen that it is gone.")
	d.wake(end)
	return true
}
