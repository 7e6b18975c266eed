// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Somebody can delete the ReplicaSet of the stable version in the middle of a release.
// The Deployment is held, so its controller does not make it again, and nobody else
// knows its template. What answers then is not taken away:
//
//	there is                                       | phase      | then
//	-----------------------------------------------+------------+------------------------------
//	an older version that the Deployment brings up | Fallback   | stable as soon as it is available
//	a rejected template                            | StableLost | it stays out, and a user decides
//	a canary with pods                             | LastCopy   | it keeps them, and a user decides
//	none of them                                   | First      | the Deployment brings up its template

// assessLost finds the phase without a stable version.
func assessLost(s *snapshot) phase {
	w := &s.Workload
	lost := s.status.Stable != nil && w.ManagedBy == s.Rollout.Name && w.Paused && w.HeldBySerin
	switch {
	case lost && fallback(s) != nil:
		return phaseFallback
	case lost && templateRejected(s):
		return phaseStableLost
	case lost && lastCopy(s) != nil:
		return assessLastCopy(s)
	case s.refusal != nil:
		return phaseNothing
	}
	return phaseFirst
}

// assessLastCopy leaves the canary its pods and its traffic, since there is nothing to go
// back to. Only a user may give it all of it.
func assessLastCopy(s *snapshot) phase {
	c := s.control()
	switch {
	case s.refusal != nil:
		return phaseLastCopy
	case c != nil && c.Action == v1alpha1.ControlPromoteFull && applicable(s):
		return phaseControlled
	case s.decided(v1alpha1.ActionPromote) && tampered(s):
		return phaseTampered
	case s.decided(v1alpha1.ActionPromote):
		return phasePromoting
	}
	return phaseLastCopy
}

// stall says what the user has to do.
func stall(d *draft, p phase) {
	lost := loss(&d.snapshot)
	if p == phaseStableLost {
		d.Stall(v1alpha1.ReasonStableLost, "%s Revision %s was rolled back and stays out. Set the template back to bring the stable version up again, or to another one.", lost, d.status.Decision.Revision)
		return
	}
	d.Stall(v1alpha1.ReasonStableLost, "%s There is nothing to go back to, so the canary keeps its pods and its traffic. Set spec.control to PromoteFull for revision %s, or set the template back to bring the stable version up again.", lost, d.revision)
}

// fallback is the version that the Deployment brings up instead of the deleted one.
func fallback(s *snapshot) *kit.ReplicaSet {
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && !r.Current && r.Replicas > 0 && !r.Deleting
	})
}

// lastCopy is the canary that is the only version with pods.
func lastCopy(s *snapshot) *kit.ReplicaSet {
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerSerin && r.Current && !r.Gone() && !r.Deleting
	})
}

func loss(s *snapshot) string {
	return "The ReplicaSet of the stable revision " + s.status.Stable.Revision + " was deleted."
}

// fallBack makes an older version the stable one: a paused Deployment without pods
// brings up the newest of its old ReplicaSets.
func fallBack(d *draft, to *kit.ReplicaSet) (another bool) {
	if n := d.Workload.Replicas; to.Available < n {
		d.Wait(v1alpha1.ReasonDeploying, "%s The Deployment brings up revision %s instead: %d of %d pods are available.", loss(&d.snapshot), to.Revision, to.Available, n)
		return false
	}
	d.Note(true, v1alpha1.ReasonStableLost, "%s Revision %s is stable instead", loss(&d.snapshot), to.Revision)
	d.status.Stable = &v1alpha1.VersionStatus{Revision: to.Revision}
	if s := d.status.Step; s != nil && !d.decided(v1alpha1.ActionPromote) {
		d.enterStep(int(s.Index)) // it has to prove itself beside another version
	}
	return d.refusal == nil
}

// lastCopyToKeep is the canary that becomes the stable version when the Rollout is deleted
// and there is no other one.
func lastCopyToKeep(s *snapshot) *kit.ReplicaSet {
	if s.status.Stable == nil || s.stable() != nil || workloadGone(s) ||
		s.replicaSet(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && !r.Gone() }) != nil {
		return nil
	}
	return lastCopy(s)
}

func handOverLastCopy(d *draft, last *kit.ReplicaSet) {
	d.Wait(v1alpha1.ReasonDeleting, "%s Handing the canary's pods over to the Deployment, since they are all there is.", loss(&d.snapshot))
	d.status.Stable = &v1alpha1.VersionStatus{Revision: last.Revision}
	d.Do(kit.ReleaseCanary{Object: last.Object})
}
