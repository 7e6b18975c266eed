// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func (deployment) scales() bool { return true }

func (deployment) ready(s *snapshot, want int32) bool {
	c := canaryOf(s)
	return c != nil && c.Available >= want && c.Replicas == want && c.Desired == s.Workload.Replicas
}

func (deployment) scale(d *draft, want int32) {
	rs, previous := canaryOf(&d.snapshot), previousOf(&d.snapshot)
	switch {
	case rs == nil && previous != nil:
		d.do(AdoptCanary{exact(previous)})
	case rs == nil:
		d.do(CreateCanary{Revision: d.revision, Replicas: want})
	case rs.Replicas != want || rs.Desired != d.Workload.Replicas:
		d.do(ScaleReplicaSet{Target: exact(rs), Replicas: want, Desired: d.Workload.Replicas})
	}
}

func (deployment) missing(s *snapshot, want int32) string {
	var now canary
	if s.canary != nil {
		now = *s.canary
	}
	text := fmt.Sprintf("%d of the canary's %d pods are available", now.Available, want)
	if now.Failure != "" {
		text += ". Its pods can't be created: " + strings.TrimSuffix(now.Failure, ".")
	}
	return text
}

func (deployment) count(s *snapshot, v *v1alpha1.VersionStatus) (replicas, ready int32) {
	if r := s.replicaSet(func(r *ReplicaSet) bool { return r.Revision == v.Revision }); r != nil {
		return r.Replicas, r.Available
	}
	return 0, 0
}

// canaryPods reports whether a canary other than keep has pods.
func canaryPods(s *snapshot, keep *ReplicaSet) bool {
	return s.replicaSet(func(r *ReplicaSet) bool {
		return r.Owner == OwnerRollout && !r.gone() && (keep == nil || r.UID != keep.UID)
	}) != nil
}

// endRelease sends all traffic to stable, even when the canary is gone already,
// and removes every canary.
func endRelease(d *draft) (done bool) { return stopTraffic(d) && removeCanaries(d, nil) }

// removeCanaries removes every canary but keep, and reports whether they are
// gone. A canary loses its pods only after the router reports that it gets no
// traffic.
func removeCanaries(d *draft, keep *ReplicaSet) (done bool) {
	done = true
	for i := range d.ReplicaSets {
		r := &d.ReplicaSets[i]
		switch {
		case r.Owner != OwnerRollout || keep != nil && r.UID == keep.UID:
		case !r.gone():
			done = false
			if stopTraffic(d) && r.Replicas > 0 {
				d.do(ScaleReplicaSet{Target: exact(r), Replicas: 0, Desired: r.Desired})
			}
		default:
			removeEmpty(d, r)
		}
	}
	if !done && d.state.reason == "" {
		d.progress(v1alpha1.ReasonRollingBack, "Removing the canary's pods.")
	}
	return done
}

// removeEmpty deletes a canary without pods. The rejected revision keeps its empty
// ReplicaSet: by its template it is known again, whatever happens to names and hashes.
func removeEmpty(d *draft, r *ReplicaSet) {
	if !isRejected(&d.snapshot, r) && !r.Deleting {
		d.do(DeleteReplicaSet{exact(r)})
	}
}

// isRejected reports whether r is kept to know a rejected template again.
func isRejected(s *snapshot, r *ReplicaSet) bool {
	return s.decided(v1alpha1.ActionRollBack) && r.Revision == s.status.Decision.Revision && r.Current
}

// promote hands the canary over to the Deployment. One that is not exactly at full
// scale, down to its last pod, is never handed over: the Deployment controller would
// scale both versions in proportion.
func (t deployment) promote(d *draft) (another bool) {
	all, want := Route{Weight: fullWeight}, d.Workload.Replicas
	if !t.ready(&d.snapshot, want) {
		t.scale(d, want)
		d.say(v1alpha1.ReasonPromoting, "Promoting: %s.", t.missing(&d.snapshot, want))
		return orTooLate(d)
	}
	d.request(all)
	switch {
	case !d.routed(all):
		d.say(v1alpha1.ReasonPromoting, "Promoting: waiting until all traffic goes to the canary: %s.", trafficWait(&d.snapshot, all))
	case d.canary.Existing != d.canary.Available || d.canary.Existing != want:
		d.say(v1alpha1.ReasonPromoting, "Promoting: the canary has %d pods and is being scaled to %d.", d.canary.Existing, want)
	default:
		d.say(v1alpha1.ReasonPromoting, "Promoting: handing the canary's pods over to the Deployment.")
		d.status.Decision.HandedOver = true
		d.do(ReleaseCanary{exact(canaryOf(&d.snapshot))})
		return false
	}
	return orTooLate(d)
}

// handedOver is the ReplicaSet that was promoted and handed over, until it is
// recorded as stable.
func handedOver(s *snapshot) *ReplicaSet {
	if !s.decided(v1alpha1.ActionPromote) || !s.status.Decision.HandedOver {
		return nil
	}
	return s.replicaSet(func(r *ReplicaSet) bool {
		return r.Owner != OwnerRollout && r.Revision == s.status.Decision.Revision
	})
}

// adopt waits until the Deployment has the promoted ReplicaSet and the old pods
// are gone; then it is the stable version.
func adopt(d *draft) (another bool) {
	r := handedOver(&d.snapshot)
	if d.Split.Presence == Present && !d.Split.Deleting {
		d.request(Route{Weight: fullWeight})
	}
	left := oldPods(&d.snapshot, r)
	if r.Owner == OwnerDeployment && len(left) == 0 {
		promoted(d, "Revision %s is stable now", r.Revision)
		d.status.Stable = &v1alpha1.VersionStatus{Revision: r.Revision}
		return true
	}
	d.progress(v1alpha1.ReasonPromoting, "Promoting: waiting for the Deployment to take the canary's pods over.")
	if r.Owner == OwnerDeployment {
		d.say(v1alpha1.ReasonPromoting, "Promoting: the old pods are being removed, %d are left.", left[len(left)-1].Existing)
		removeOldPods(d, r, left)
	}
	return false
}

// oldPods are the versions that still have pods beside the promoted one. Where a newer
// one was rolled out in full past Serin, those of the promoted one are gone themselves.
func oldPods(s *snapshot, promoted *ReplicaSet) (left []*ReplicaSet) {
	if !promoted.Current && promoted.gone() {
		return nil
	}
	for i := range s.ReplicaSets {
		if old := &s.ReplicaSets[i]; old.Owner == OwnerDeployment && old.UID != promoted.UID && !old.gone() {
			left = append(left, old)
		}
	}
	return left
}

// removeOldPods sees to it that no pod is left but those of the promoted version. The
// Deployment controller does it while the template is that of the promoted version. One
// that is not paused would bring a newer version up again and again.
func removeOldPods(d *draft, promoted *ReplicaSet, old []*ReplicaSet) {
	switch {
	case promoted.Current && promoted.Replicas != d.Workload.Replicas && d.Workload.Paused:
		// Scaled in this very moment: a paused Deployment would keep both versions.
		d.do(SetPaused{Paused: false})
	case promoted.Current:
	case !d.Workload.Paused:
		d.do(SetPaused{Paused: true})
	default:
		for _, r := range old {
			if r.Replicas > 0 {
				d.do(ScaleReplicaSet{Target: exact(r), Replicas: 0, Desired: r.Desired})
			}
		}
	}
}

// rollBack takes the rejected canary out, and stays there until the template
// changes. It never waits for the canary to be healthy.
func (deployment) rollBack(d *draft) (another bool) {
	yield(d)
	if !rampDown(d) || !endRelease(d) || !handOff(d, true) {
		rollingBack(d)
		return false
	}
	if retry(d) {
		return false
	}
	decision := d.status.Decision
	if previous := previousOf(&d.snapshot); previous != nil && previous.Revision == decision.Revision {
		// Rejected before it was a canary: a paused Deployment that is scaled from zero
		// would bring it up again.
		d.do(AdoptCanary{exact(previous)})
	}
	d.stall(v1alpha1.ReasonRolledBack, "Revision %s was rolled back: %s. Stable revision %s has all traffic; change the template to go on.", decision.Revision, decision.Message, d.status.Stable.Revision)
	return false
}

func (deployment) withdraw(d *draft) { stopTraffic(d) }
