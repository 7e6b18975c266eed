// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
)

// lastCopyToKeep is the canary that becomes the stable version when the Rollout is deleted
// and there is no other one.
func lastCopyToKeep(s *state.Snapshot) *kit.ReplicaSet {
	if s.Status.Stable == nil || s.Stable() != nil || workloadGone(s) ||
		s.ReplicaSet(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && !r.Gone() }) != nil {
		return nil
	}
	return lastCopy(s)
}

func handOverLastCopy(d *state.Draft, last *kit.ReplicaSet) {
	d.Wait(v1alpha1.ReasonDeleting, "%s Handing the canary's pods over to the Deployment, since no other pods are left.", loss(&d.Snapshot))
	d.Status.Stable = &v1alpha1.VersionStatus{Revision: last.Revision}
	d.Do(kit.ReleaseCanary{Object: last.Object})
}

// restore gives everything back: first the traffic, then the Deployment. A
// promotion that was handed over completes; any other release is rolled
// back.
func restore(d *state.Draft) (another bool) {
	last := lastCopyToKeep(&d.Snapshot)
	switch {
	case leavesRouter(&d.Snapshot):
		leaveRouter(d)
		d.State.Reason = v1alpha1.ReasonDeleting
		return false
	case handedOver(&d.Snapshot) != nil && d.Workload.Presence == kit.Present && !d.Workload.Deleting:
		return adopt(d)
	case last != nil:
		handOverLastCopy(d, last)
		return false
	}
	if routing.ReturnTraffic(d, endAll) {
		d.Wait(v1alpha1.ReasonDeleting, "Restoring the Deployment.")
		if d.Workload.Presence == kit.Present && d.Workload.ManagedBy == d.Rollout.Name {
			restoreDeployment(d)
		}
		d.Do(kit.RemoveFinalizer{})
	}
	return false
}

// endAll ends the release, and takes its pods from a canary that the Deployment adopted.
func endAll(d *state.Draft) (done bool) {
	if !endRelease(d) {
		return false
	}
	r := adopted(&d.Snapshot)
	if r == nil {
		return true
	}
	if kept := emptyAdopted(d, d.Stable(), r); kept != "" {
		d.Wait(v1alpha1.ReasonDeleting, "%s", kept)
		return false
	}
	d.Wait(v1alpha1.ReasonDeleting, "Removing the pods of revision %s, which the Deployment adopted before it was promoted.", r.Revision)
	return false
}

// adopted is the canary when the Deployment, which is paused on its template, controls it although
// it was never handed over: its controller adopts one that has no owner, as after the restore of a
// backup. With both versions the Deployment could never go on but by rolling that one out.
func adopted(s *state.Snapshot) *kit.ReplicaSet {
	if stable := s.Stable(); stable == nil || stable.Gone() || !s.Workload.Paused {
		return nil
	}
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && r.Current && r.Unpromoted && !r.Gone() && r.Revision != s.Status.Stable.Revision
	})
}

// restoreDeployment un-pauses the Deployment only if that rolls nothing unverified.
func restoreDeployment(d *state.Draft) {
	stable := d.Stable()
	verified := d.Status.Stable == nil || stable != nil && stable.Current
	d.Do(state.RestoreDeployment{Paused: !verified})
	if !verified {
		d.Note(true, v1alpha1.ReasonDeleting, "The Deployment %q stays paused, since its template is not the stable version; revert the template, or set spec.paused to false to roll it out", d.Rollout.Spec.WorkloadRef.Name)
	}
}
