// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// What other actors change of a release's objects is restored, and never counts as
// progress:
//
//	edit                                        | phase      | then
//	--------------------------------------------+------------+--------------------------------
//	weights, matches, mark of the split         | Tampered   | written again
//	split deleted                               | SplitDeleted | made again; the step begins again
//	a backend Service edited or deleted         | Preparing  | made again (upkeep, repair)
//	mark or controller of the canary            | Reclaiming | restored
//	canary deleted                              | Failed     | rolled back
//	Deployment un-paused on a rejected template | Unpaused   | paused, and its pods removed until it has all
//	Deployment un-paused during a release       | Unguarded  | rolled out in full, said so
//	Deployment scaled from zero                 | Stale      | the stale version is scaled down

// recognise counts objects as ours that lost their mark in the middle of a
// release: the names were ours before, and a bad canary must not go on
// because of a missing label. They are written again.
func recognise(s *state.Snapshot) {
	if !state.RecogniseSplit(s) {
		return
	}
	for _, b := range []*kit.Backend{&s.StableService, &s.CanaryService} {
		if b.Presence == kit.Present && !b.Ours {
			b.Ours, b.UpToDate = true, false
		}
	}
}

// assessDrift finds out what others did to the pods of a release.
func assessDrift(s *state.Snapshot) state.Phase {
	switch {
	case unmarked(s) != nil:
		return phaseReclaiming
	case slipped(s) != nil && templateRejected(s) && s.Stable() != nil && !s.Stable().Gone():
		return phaseUnpaused
	case slipped(s) != nil:
		return phaseUnguarded
	case stale(s) != nil && s.Split.Presence == kit.Absent:
		return phaseStale
	}
	return state.PhaseReleasing
}

func actOnDrift(d *state.Draft, p state.Phase) (another bool) {
	switch p {
	case phaseReclaiming:
		r := unmarked(&d.Snapshot)
		d.Wait(v1alpha1.ReasonPreparing, "Restoring ReplicaSet %q, since another actor removed its label or its owner reference.", r.Name)
		d.Do(state.AdoptCanary{Object: r.Object})
	case phaseUnpaused:
		repause(d, slipped(&d.Snapshot))
	case phaseUnguarded:
		return rollOutUnguarded(d, slipped(&d.Snapshot))
	case phaseStale:
		old, stable := stale(&d.Snapshot), d.Stable()
		replaceStale(d)
		d.Wait(v1alpha1.ReasonDeploying, "Revision %s is stable, but the Deployment came up from zero with revision %s, which is scaled down: %d of %d pods are available.", stable.Revision, old.Revision, stable.Available, d.Workload.Replicas)
	}
	return false
}

// unmarked is the canary when another actor removed its mark or its controller. The
// Deployment controller adopts one without a controller at once. Before the traffic
// was under control there was no canary: pods of its template are the Deployment's.
func unmarked(s *state.Snapshot) *kit.ReplicaSet {
	if !s.Begun() || !underControl(s) {
		return nil
	}
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		lost := r.Owner != kit.OwnerSerin && !r.Gone() || r.Owner == kit.OwnerSerin && !r.Marked
		return lost && r.Revision == s.Status.Canary.Revision && !r.Deleting && r.Revision != s.Status.Stable.Revision
	})
}

// underControl reports whether the root Service does not select the canary's pods,
// or is meant to.
func underControl(s *state.Snapshot) bool {
	return s.ByReplicas || s.Split.Presence == kit.Present && !s.Split.Deleting && s.Split.Observed >= 0
}

// slipped is a ReplicaSet that the Deployment controller brought up bypassing Serin:
// the template was changed while nothing held the Deployment.
func slipped(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && r.Current && !r.Gone() && r.Revision != s.Status.Stable.Revision
	})
}

// templateRejected reports whether the present template is the one that was rolled back:
// its empty ReplicaSet is kept to know, once it had one.
func templateRejected(s *state.Snapshot) bool {
	return s.Decided(v1alpha1.ActionRollBack) && s.Status.Decision.Revision == templateRevision(s)
}

// repause pauses a Deployment again that another actor un-paused on a rejected template: a
// rollback sticks. A version that is rolled out in full already stays, since
// its old pods are gone, or about to go.
func repause(d *state.Draft, r *kit.ReplicaSet) {
	d.Wait(v1alpha1.ReasonRolledBack, "Revision %s was rolled back; another actor resumed the Deployment on it, and Serin pauses it again.", d.Status.Decision.Revision)
	switch {
	case !paused(&d.Snapshot, true):
		pause(d, true)
	case !ousts(&d.Snapshot, r):
		versions.Empty(&d.Draft, r)
	}
}

// rollOutUnguarded lets a version that the Deployment controller already rolls out past
// Serin come up in full, and calls it stable then: to stop it half way would
// leave users with two versions. It removes a canary first.
func rollOutUnguarded(d *state.Draft, r *kit.ReplicaSet) (another bool) {
	switch {
	case d.Split.Presence == kit.Absent && !d.CanaryPods(nil):
	case !paused(&d.Snapshot, true):
		pause(d, true)
		return false
	default:
		if endRelease(d) {
			routing.CleanUp(d)
		}
		return false
	}
	if !d.Workload.Settled {
		letRoll(d, "The Deployment rolls out revision %s without steps, bypassing Serin: %d of %d pods are available.", r.Revision, d.Workload.Available, d.Workload.Replicas)
		d.State.Reason = v1alpha1.ReasonUnguardedChange
		return false
	}
	d.Note(true, v1alpha1.ReasonUnguardedChange, "Revision %s was rolled out without steps, bypassing Serin, since nothing paused the Deployment when its template changed", r.Revision)
	deployed(d, r, "Rolled out bypassing Serin.")
	return true
}

// stale is an old version that has pods although it is neither stable nor the
// template's: a paused Deployment that is scaled from zero brings up the newest of
// its old ReplicaSets, whichever is stable.
func stale(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && !r.Current && r.Replicas > 0 && r.Revision != s.Status.Stable.Revision
	})
}

// replaceStale replaces the pods of a stale version by those of the stable one. As long as there is no split,
// both versions answer, so as many pods stay as the scale wants. Stable goes ahead by a
// quarter, the usual surge, since the Deployment controller scales both in proportion
// beyond that.
func replaceStale(d *state.Draft) {
	stable := d.Stable()
	if stable == nil {
		return
	}
	old := stale(&d.Snapshot)
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

// Tidy replaces a stale version and deletes canaries without pods.
func (Target) Tidy(d *state.Draft) {
	replaceStale(d)
	keep := canaryOf(&d.Snapshot)
	for i := range d.ReplicaSets {
		if r := &d.ReplicaSets[i]; r.Owner == kit.OwnerSerin && r.Gone() && (keep == nil || r.UID != keep.UID) {
			removeEmpty(d, r)
		}
	}
}
