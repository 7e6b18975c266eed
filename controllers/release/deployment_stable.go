// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// firstVersion waits until the Deployment controller has brought up one
// version in full: that is the stable one. There is no canary and no analysis.
func firstVersion(d *draft) (another bool) {
	d.status.Stable = nil
	w := &d.Workload
	if current := currentOf(&d.snapshot); current != nil && w.Settled {
		deployed(d, current, "The first version.")
		return true
	}
	before := inUse(&d.snapshot)
	switch {
	case w.Paused && before != nil:
		closeRelease(d, v1alpha1.OutcomeDeployed, before.Revision, "It had all pods while the Deployment was paused on another template.")
		record(d, before)
		d.Wait(v1alpha1.ReasonPreparing, "Revision %s is stable; the Deployment's template is another one, and is released by steps.", before.Revision)
		d.wake(d.Now)
	case w.Paused && !w.HeldBySerin:
		d.Say(v1alpha1.ReasonDeploying, "The Deployment is paused and its first version is not up; set its spec.paused to false.")
	default:
		letRoll(d, "Waiting for the first version: %d of %d pods are available.", w.Available, w.Replicas)
	}
	return false
}

// currentOf is the Deployment's own ReplicaSet of its template.
func currentOf(s *snapshot) *kit.ReplicaSet {
	return s.replicaSet(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && r.Current })
}

// inUse is the one version that answers while the Deployment is paused on the template
// of another: a former Rollout may have rejected that one.
func inUse(s *snapshot) (found *kit.ReplicaSet) {
	for i := range s.ReplicaSets {
		switch r := &s.ReplicaSets[i]; {
		case r.Gone() || r.Owner != kit.OwnerDeployment:
		case r.Current || found != nil || r.Available < r.Replicas:
			return nil
		default:
			found = r
		}
	}
	return found
}

// withoutPods makes a new template stable without steps, since there is no traffic
// to split and nothing to compare.
func withoutPods(d *draft) (another bool) {
	yield(d)
	if current := currentOf(&d.snapshot); current != nil && d.Workload.Settled {
		deployed(d, current, "The Deployment was scaled to zero.")
		return true
	}
	letRoll(d, "The Deployment is scaled to zero, so its new template becomes stable without steps.")
	return false
}

// letRoll leaves the Deployment to its controller.
func letRoll(d *draft, format string, args ...any) {
	d.Wait(v1alpha1.ReasonDeploying, format, args...)
	if d.Workload.Paused && d.Workload.HeldBySerin {
		d.Do(SetPaused{Paused: false})
	}
}

// record makes a version the stable one.
func record(d *draft, r *kit.ReplicaSet) {
	d.status.Stable = &v1alpha1.VersionStatus{Revision: r.Revision}
	forgetRelease(d)
}

// deployed makes a version the stable one that came up without steps.
func deployed(d *draft, r *kit.ReplicaSet, why string) {
	forgetRelease(d)
	closeRelease(d, v1alpha1.OutcomeDeployed, r.Revision, why)
	record(d, r)
}

// settle takes away whatever a release left behind; then the Rollout is Ready.
func settle(d *draft) {
	yield(d)
	if d.status.Step != nil && !d.decided(v1alpha1.ActionRollBack) && d.begun() {
		const why = "The template was set back to the stable version."
		closeRelease(d, v1alpha1.OutcomeSuperseded, d.status.Canary.Revision, why)
		notifyOutcome(d, v1alpha1.NotifySuperseded, why)
	}
	forgetRelease(d)
	ignoreControl(d)
	if !endRelease(d) || !handOff(d, !d.GuardInForce) {
		return
	}
	stable, want := d.stable(), d.Workload.Replicas
	if stable.Available < want || stable.Replicas != want {
		d.Wait(v1alpha1.ReasonDeploying, "Revision %s is stable; %d of %d pods are available.", stable.Revision, stable.Available, want)
		return
	}
	d.Say(v1alpha1.ReasonStable, "Revision %s is stable; all %d pods are available.", stable.Revision, want)
	d.State.Ready = true
}

// handOff is cleanUp and, after it, pausing the Deployment or not. What becomes of the
// weight is said when both are done.
func handOff(d *draft, wantPaused bool) (done bool) {
	weight := d.status.Weight
	if !cleanUp(d) {
		return false
	}
	if paused(&d.snapshot, wantPaused) {
		return true
	}
	pause(d, wantPaused)
	d.status.Weight, d.leaving = weight, weight != nil
	return false
}

// restore gives everything back: first the traffic, then the Deployment. A
// promotion that was handed over is seen through; any other release is rolled
// back.
func restore(d *draft) (another bool) {
	last := lastCopyToKeep(&d.snapshot)
	switch {
	case leavesRouter(&d.snapshot):
		leaveRouter(d)
		d.State.Reason = v1alpha1.ReasonDeleting
		return false
	case handedOver(&d.snapshot) != nil && d.Workload.Presence == kit.Present && !d.Workload.Deleting:
		return adopt(d)
	case last != nil:
		handOverLastCopy(d, last)
		return false
	}
	restoreService(d)
	return false
}
