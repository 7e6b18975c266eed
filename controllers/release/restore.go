// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// finalized says that nothing is left to do when the Rollout has no finalizer any more.
func finalized(d *draft) bool {
	if slices.Contains(d.Rollout.Finalizers, v1alpha1.Finalizer) {
		return false
	}
	d.Say(v1alpha1.ReasonDeleting, "Nothing is left to restore.")
	return true
}

// restoreService ends the release, returns the traffic to the root Service and lets the
// Rollout go.
func restoreService(d *draft) {
	d.status.Decision = nil // no rejected revision has to be known again
	if !takeBack(d) || !cleanUp(d) {
		d.State.Reason = v1alpha1.ReasonDeleting
		return
	}
	d.Wait(v1alpha1.ReasonDeleting, "Restoring the Deployment.")
	if d.Workload.Presence == kit.Present && d.Workload.ManagedBy == d.Rollout.Name {
		restoreDeployment(d)
	}
	d.Do(kit.RemoveFinalizer{})
}

// takeBack ends the release. A router that has not confirmed by the deadline that the
// canary gets no traffic, counted from the deletion, is not waited for any more: then
// the split goes first, and its weights with it, while the pods of both versions
// still answer behind the Service.
func takeBack(d *draft) (done bool) {
	over, look := d.over(d.Rollout.DeletionTimestamp.Add(d.deadline))
	d.wake(look)
	if !over {
		return endRelease(d)
	}
	if stopTraffic(d) {
		return endRelease(d)
	}
	d.Actions = nil
	cleanUp(d)
	d.Say(v1alpha1.ReasonDeleting, "Returning the traffic to the Service %q, since the router did not confirm within %s that the canary gets none: %s.", d.Rollout.Spec.Service, brief(d.deadline), trafficWait(&d.snapshot, Route{}))
	return false
}

// restoreDeployment un-pauses the Deployment only if that rolls nothing unverified.
func restoreDeployment(d *draft) {
	stable := d.stable()
	verified := d.status.Stable == nil || stable != nil && stable.Current
	d.Do(RestoreDeployment{Paused: !verified})
	if !verified {
		d.Note(true, v1alpha1.ReasonDeleting, "The Deployment %q stays paused, since its template is not the stable version; set the template back, or set spec.paused to false to roll it out", d.Rollout.Spec.WorkloadRef.Name)
	}
}
