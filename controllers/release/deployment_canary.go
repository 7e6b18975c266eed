// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/versions"
)

func (deployment) scale(d *draft, want int32) {
	rs, previous := canaryOf(&d.snapshot), previousOf(&d.snapshot)
	switch {
	case rs == nil && previous != nil:
		d.Do(AdoptCanary{previous.Object})
	case rs == nil:
		d.Do(CreateCanary{Revision: d.revision, Replicas: want})
	default:
		versions.Scale(&d.Draft, rs, want, d.Workload.Replicas)
	}
}

// endRelease sends all traffic to stable, even when the canary is gone already,
// and removes every canary.
func endRelease(d *draft) (done bool) { return stopTraffic(d) && removeCanaries(d, nil) }

// removeCanaries removes every canary but keep, and reports whether they are
// gone. A canary loses its pods only after the router reports that it gets no
// traffic.
func removeCanaries(d *draft, keep *kit.ReplicaSet) (done bool) {
	done = true
	for i := range d.ReplicaSets {
		r := &d.ReplicaSets[i]
		switch {
		case r.Owner != kit.OwnerSerin || keep != nil && r.UID == keep.UID:
		case !r.Gone():
			done = false
			if stopTraffic(d) {
				versions.Empty(&d.Draft, r)
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

// removeEmpty deletes a canary without pods. The rejected revision keeps its empty
// ReplicaSet: by its template it is known again, whatever happens to names and hashes.
func removeEmpty(d *draft, r *kit.ReplicaSet) {
	if !isRejected(&d.snapshot, r) {
		versions.Delete(&d.Draft, r)
	}
}

// isRejected reports whether r is kept to know a rejected template again.
func isRejected(s *snapshot, r *kit.ReplicaSet) bool {
	return s.decided(v1alpha1.ActionRollBack) && r.Revision == s.status.Decision.Revision && r.Current
}

// promoteReplicaSet hands the canary over to the Deployment. One that is not exactly at full
// scale, down to its last pod, is never handed over: the Deployment controller would
// scale both versions in proportion.
func promoteReplicaSet(d *draft) (another bool) {
	all, want := Route{Weight: fullWeight}, d.Workload.Replicas
	if !d.ready(want) {
		scale(d, want)
		d.Say(v1alpha1.ReasonPromoting, "Promoting: %s.", d.missing(want))
		return orTooLate(d)
	}
	d.request(all)
	switch {
	case versions.HandOver(&d.Draft, canaryOf(&d.snapshot), want, func() bool { return d.routed(all) }):
		d.Say(v1alpha1.ReasonPromoting, "Promoting: handing the canary's pods over to the Deployment.")
		d.status.Decision.HandedOver = true
		return false
	case !d.routed(all):
		d.Say(v1alpha1.ReasonPromoting, "Promoting: waiting until all traffic goes to the canary: %s.", trafficWait(&d.snapshot, all))
	default:
		d.Say(v1alpha1.ReasonPromoting, "Promoting: the canary has %d pods and is being scaled to %d.", d.canary.Existing, want)
	}
	return orTooLate(d)
}

// handedOver is the ReplicaSet that was promoted and handed over, until it is
// recorded as stable.
func handedOver(s *snapshot) *kit.ReplicaSet {
	if !s.decided(v1alpha1.ActionPromote) || !s.status.Decision.HandedOver {
		return nil
	}
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner != kit.OwnerSerin && r.Revision == s.status.Decision.Revision
	})
}

// adopt waits until the Deployment has the promoted ReplicaSet and the old pods
// are gone; then it is the stable version.
func adopt(d *draft) (another bool) {
	r := handedOver(&d.snapshot)
	if d.Split.Presence == kit.Present && !d.Split.Deleting {
		d.request(Route{Weight: fullWeight})
	}
	left := oldPods(&d.snapshot, r)
	if r.Owner == kit.OwnerDeployment && len(left) == 0 {
		promoted(d, "Revision %s is stable now", r.Revision)
		d.status.Stable = &v1alpha1.VersionStatus{Revision: r.Revision}
		return true
	}
	d.Wait(v1alpha1.ReasonPromoting, "Promoting: waiting for the Deployment to take the canary's pods over.")
	if r.Owner == kit.OwnerDeployment {
		d.Say(v1alpha1.ReasonPromoting, "Promoting: the old pods are being removed, %d are left.", left[len(left)-1].Existing)
		removeOldPods(d, r, left)
	}
	return false
}

// oldPods are the versions that still have pods beside the promoted one. Where a newer
// one was rolled out in full past Serin, those of the promoted one are gone themselves.
func oldPods(s *snapshot, promoted *kit.ReplicaSet) (left []*kit.ReplicaSet) {
	if !promoted.Current && promoted.Gone() {
		return nil
	}
	return versions.Others(s.ReplicaSets, promoted)
}

// removeOldPods sees to it that no pod is left but those of the promoted version. The
// Deployment controller does it while the template is that of the promoted version. One
// that is not paused would bring a newer version up again and again.
func removeOldPods(d *draft, promoted *kit.ReplicaSet, old []*kit.ReplicaSet) {
	switch {
	case promoted.Current && promoted.Replicas != d.Workload.Replicas && d.Workload.Paused:
		// Scaled in this very moment: a paused Deployment would keep both versions.
		d.Do(SetPaused{Paused: false})
	case promoted.Current:
	case !d.Workload.Paused:
		d.Do(SetPaused{Paused: true})
	default:
		for _, r := range old {
			versions.Empty(&d.Draft, r)
		}
	}
}

// rollBack takes the rejected canary out, and stays there until the template
// changes. It never waits for the canary to be healthy.
func rollBack(d *draft) {
	yield(d)
	if !rampDown(d) || !endRelease(d) || !handOff(d, true) {
		rollingBack(d)
		return
	}
	if retry(d) {
		return
	}
	decision := d.status.Decision
	if previous := previousOf(&d.snapshot); previous != nil && previous.Revision == decision.Revision {
		// Rejected before it was a canary: a paused Deployment that is scaled from zero
		// would bring it up again.
		d.Do(AdoptCanary{previous.Object})
	}
	d.Stall(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. Stable revision %s has all traffic; change the template to go on.", decision.Revision, decision.Message, d.status.Stable.Revision)
}
