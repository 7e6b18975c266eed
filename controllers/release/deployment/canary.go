// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"strconv"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// Scale makes or scales the canary.
func (Target) Scale(d *state.Draft, want int32) {
	rs, previous := canaryOf(&d.Snapshot), previousOf(&d.Snapshot)
	switch {
	case rs == nil && previous != nil:
		d.Do(state.AdoptCanary{Object: previous.Object})
	case rs == nil:
		d.Do(state.CreateCanary{Revision: d.Revision, Replicas: want})
	default:
		versions.Scale(&d.Draft, rs, want, d.Workload.Replicas)
	}
}

// endRelease sends all traffic to stable, even when the canary is gone already,
// and removes every canary.
func endRelease(d *state.Draft) (done bool) { return routing.StopTraffic(d) && removeCanaries(d, nil) }

// removeCanaries removes every canary but keep, and reports whether they are
// gone. A canary loses its pods only after the router reports that it gets no
// traffic.
func removeCanaries(d *state.Draft, keep *kit.ReplicaSet) (done bool) {
	done = true
	for i := range d.ReplicaSets {
		r := &d.ReplicaSets[i]
		switch {
		case r.Owner != kit.OwnerSerin || keep != nil && r.UID == keep.UID:
		case !r.Gone():
			done = false
			if routing.StopTraffic(d) {
				empty(d, r)
			}
		default:
			removeEmpty(d, r)
		}
	}
	if !done && d.State.Reason == "" {
		d.Wait(v1alpha1.ReasonRollingBack, "Removing the canary's pods.")
	}
	return done
}

// empty removes the pods of a canary that gets no traffic. On a rejected one it writes why.
func empty(d *state.Draft, r *kit.ReplicaSet) {
	if isRejected(&d.Snapshot, r) && r.Replicas > 0 {
		decision := d.Status.Decision
		d.Do(kit.ScaleReplicaSet{Object: r.Object, Desired: r.Desired, Rejected: decision.Reason + ": " + decision.Message})
		return
	}
	versions.Empty(&d.Draft, r)
}

// removeEmpty deletes a canary without pods. The rejected revision keeps its empty
// ReplicaSet: by its template it is known again, whatever happens to names and hashes.
func removeEmpty(d *state.Draft, r *kit.ReplicaSet) {
	if !isRejected(&d.Snapshot, r) {
		versions.Delete(&d.Draft, r)
	}
}

// isRejected reports whether r is kept to know a rejected template again.
func isRejected(s *state.Snapshot, r *kit.ReplicaSet) bool {
	return s.Decided(v1alpha1.ActionRollBack) && r.Revision == s.Status.Decision.Revision && r.Current
}

// promote hands the canary over to the Deployment. One that is not exactly at full
// scale, down to its last pod, is never handed over: the Deployment controller would
// scale both versions in proportion.
func promote(d *state.Draft) (another bool) {
	all, want := strategy.Route{Weight: strategy.FullWeight}, d.Workload.Replicas
	if !d.Ready(want) {
		routing.Scale(d, want)
		d.Say(v1alpha1.ReasonPromoting, "Promoting: %s.", d.Missing(want))
		return routing.OrTooLate(d)
	}
	d.Request(all)
	switch {
	case versions.HandOver(&d.Draft, canaryOf(&d.Snapshot), want, promotionOf(d.Status.Decision), func() bool { return d.Routed(all) }):
		d.Say(v1alpha1.ReasonPromoting, "Promoting: handing the canary's pods over to the Deployment.")
		return false
	case !d.Routed(all):
		d.Say(v1alpha1.ReasonPromoting, "Promoting: waiting until all traffic goes to the canary: %s.", routing.TrafficWait(&d.Snapshot, all))
	default:
		d.Say(v1alpha1.ReasonPromoting, "Promoting: the canary has %d pods and is being scaled to %d.", d.Canary.Existing, want)
	}
	return routing.OrTooLate(d)
}

// promotionOf names a promotion: the ReplicaSet that is handed over carries it, so that this
// is known after a crash without a write of the status.
func promotionOf(decision *v1alpha1.Decision) string {
	return strconv.FormatInt(decision.Time.UnixMicro(), 10)
}

// handedOver is the ReplicaSet that was promoted and handed over, until it is
// recorded as stable.
func handedOver(s *state.Snapshot) *kit.ReplicaSet {
	if !s.Decided(v1alpha1.ActionPromote) {
		return nil
	}
	decision := s.Status.Decision
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner != kit.OwnerSerin && r.Revision == decision.Revision && (decision.HandedOver || r.Promotion == promotionOf(decision))
	})
}

// adopt waits until the Deployment has the promoted ReplicaSet and the old pods
// are gone, and returns the traffic to the Service; then it is the stable version.
func adopt(d *state.Draft) (another bool) {
	r := handedOver(&d.Snapshot)
	left := oldPods(&d.Snapshot, r)
	if r.Owner == kit.OwnerDeployment && len(left) == 0 {
		return conclude(d, r)
	}
	if d.Split.Presence == kit.Present && !d.Split.Deleting {
		d.Request(strategy.Route{Weight: strategy.FullWeight})
	}
	d.Wait(v1alpha1.ReasonPromoting, "Promoting: waiting for the Deployment to adopt the canary's pods.")
	if r.Owner == kit.OwnerDeployment {
		d.Say(v1alpha1.ReasonPromoting, "Promoting: the old pods are being removed, %d are left.", left[len(left)-1].Existing)
		removeOldPods(d, r, left)
	}
	return false
}

// conclude removes what was made for the release, and records then that the promoted
// version is stable: until then the objects say all of it, and one write says that it is
// Ready as well. A newer template is not let go on.
func conclude(d *state.Draft, r *kit.ReplicaSet) (another bool) {
	step, wantPaused := d.Status.Step, d.Workload.Paused
	if r.Current {
		wantPaused = !d.GuardInForce
	}
	done := handOff(d, wantPaused)
	if d.Status.Step, d.Measure = step, false; !done {
		return false
	}
	record.Promoted(d, "Revision %s is stable now", r.Revision)
	d.Status.Stable = &v1alpha1.VersionStatus{Revision: r.Revision}
	return true
}

// oldPods are the versions that still have pods, except the promoted one. Where a newer
// one was rolled out in full bypassing Serin, those of the promoted one are gone themselves.
func oldPods(s *state.Snapshot, promoted *kit.ReplicaSet) (left []*kit.ReplicaSet) {
	if !promoted.Current && promoted.Gone() {
		return nil
	}
	return versions.Others(s.ReplicaSets, promoted)
}

// removeOldPods sees to it that no pod is left but those of the promoted version. The
// Deployment controller does it while the template is that of the promoted version. One
// that is not paused would bring a newer version up again and again.
func removeOldPods(d *state.Draft, promoted *kit.ReplicaSet, old []*kit.ReplicaSet) {
	switch {
	case promoted.Current && promoted.Replicas != d.Workload.Replicas && d.Workload.Paused:
		// Scaled just now: a paused Deployment would keep both versions.
		d.Do(state.SetPaused{Paused: false})
	case promoted.Current:
	case !d.Workload.Paused:
		d.Do(state.SetPaused{Paused: true})
	default:
		for _, r := range old {
			if !ousts(&d.Snapshot, r) {
				versions.Empty(&d.Draft, r)
			}
		}
	}
}

// rollBack removes the rejected canary, and stays there until the template
// changes. It never waits for the canary to be healthy.
func rollBack(d *state.Draft) {
	replaceStale(d)
	if !routing.RampDown(d) || !endRelease(d) || !handOff(d, true) {
		routing.RollingBack(d)
		return
	}
	if record.Retry(d) {
		return
	}
	decision := d.Status.Decision
	if previous := previousOf(&d.Snapshot); previous != nil && previous.Revision == decision.Revision {
		// Rejected before it was a canary: a paused Deployment that is scaled from zero
		// would bring it up again.
		d.Do(state.AdoptCanary{Object: previous.Object})
	}
	d.Stall(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. Stable revision %s has all traffic; change the template to go on.", decision.Revision, decision.Message, d.Status.Stable.Revision)
}
