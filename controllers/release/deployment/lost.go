// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
)

// Another actor can delete the ReplicaSet of the stable version in the middle of a release.
// The Deployment is paused, so its controller does not make it again, and no other object
// has its template. What answers then stays:
//
//	there is                                       | phase      | then
//	-----------------------------------------------+------------+------------------------------
//	an older version that the Deployment brings up | Fallback   | stable as soon as it is available
//	a rejected template                            | StableLost | it stays out, and a user decides
//	a canary with pods                             | LastCopy   | it keeps them, and a user decides
//	none of them                                   | First      | the Deployment brings up its template

// assessLost finds the phase without a stable version.
func assessLost(s *state.Snapshot) state.Phase {
	w := &s.Workload
	lost := s.Status.Stable != nil && w.ManagedBy == s.Rollout.Name && w.Paused && w.HeldBySerin
	switch {
	case lost && fallback(s) != nil:
		return phaseFallback
	case lost && templateRejected(s):
		return phaseStableLost
	case lost && lastCopy(s) != nil:
		return assessLastCopy(s)
	case s.Refusal != nil:
		return state.PhaseNothing
	}
	return phaseFirst
}

// assessLastCopy leaves the canary its pods and its traffic, since no other version
// can answer. Only a user may give it all of it.
func assessLastCopy(s *state.Snapshot) state.Phase {
	c := record.UserAction(s)
	switch {
	case s.Refusal != nil:
		return phaseLastCopy
	case c != nil && c.Action == v1alpha1.ControlPromoteFull && record.Applicable(s):
		return state.PhaseControlled
	case s.Decided(v1alpha1.ActionPromote) && routing.Tampered(s):
		return state.PhaseTampered
	case s.Decided(v1alpha1.ActionPromote):
		return state.PhasePromoting
	}
	return phaseLastCopy
}

// stall says what the user has to do.
func stall(d *state.Draft, p state.Phase) {
	lost := loss(&d.Snapshot)
	if p == phaseStableLost {
		d.Stall(v1alpha1.ReasonStableLost, "%s Revision %s was rolled back and stays out. Revert the template to bring the stable version up again, or change it to another version.", lost, d.Status.Decision.Revision)
		return
	}
	d.Stall(v1alpha1.ReasonStableLost, "%s No other version can answer, so the canary keeps its pods and its traffic. Set spec.control to PromoteFull for revision %s, or revert the template to bring the stable version up again.", lost, d.Revision)
}

// fallback is the version that the Deployment brings up instead of the deleted one.
func fallback(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && !r.Current && r.Replicas > 0 && !r.Deleting
	})
}

// lastCopy is the canary that is the only version with pods.
func lastCopy(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerSerin && r.Current && !r.Gone() && !r.Deleting
	})
}

func loss(s *state.Snapshot) string {
	return "The ReplicaSet of the stable revision " + s.Status.Stable.Revision + " was deleted."
}

// fallBack makes an older version the stable one: a paused Deployment without pods
// brings up the newest of its old ReplicaSets.
func fallBack(d *state.Draft, to *kit.ReplicaSet) (another bool) {
	if n := d.Workload.Replicas; to.Available < n {
		d.Wait(v1alpha1.ReasonDeploying, "%s The Deployment brings up revision %s instead: %d of %d pods are available.", loss(&d.Snapshot), to.Revision, to.Available, n)
		return false
	}
	d.Note(true, v1alpha1.ReasonStableLost, "%s Revision %s is stable instead", loss(&d.Snapshot), to.Revision)
	d.Status.Stable = &v1alpha1.VersionStatus{Revision: to.Revision}
	if s := d.Status.Step; s != nil && !d.Decided(v1alpha1.ActionPromote) {
		d.EnterStep(int(s.Index)) // it is compared with another version now
	}
	return d.Refusal == nil
}
