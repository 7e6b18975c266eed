// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
)

// firstVersion waits until the Deployment controller has brought up one
// version in full: that is the stable one. There is no canary and no analysis.
func firstVersion(d *state.Draft) (another bool) {
	d.Status.Stable = nil
	w := &d.Workload
	if current := currentOf(&d.Snapshot); current != nil && w.Settled {
		deployed(d, current, "The first version.")
		return true
	}
	before := inUse(&d.Snapshot)
	switch {
	case w.Paused && before != nil:
		record.CloseRelease(d, v1alpha1.OutcomeDeployed, before.Revision, "It had all pods while the Deployment was paused on another template.")
		makeStable(d, before)
		d.Wait(v1alpha1.ReasonPreparing, "Revision %s is stable; the Deployment's template is another one, and is released by steps.", before.Revision)
		d.Wake(d.Now)
	case w.Paused && !w.HeldBySerin:
		d.Say(v1alpha1.ReasonDeploying, "The Deployment is paused and its first version is not up; set its annotation %s to \"true\", and its spec.paused to false.", v1alpha1.AnnotationResume)
	default:
		letRoll(d, "Waiting for the first version: %d of %d pods are available.", w.Available, w.Replicas)
	}
	return false
}

// currentOf is the Deployment's own ReplicaSet of its template.
func currentOf(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && r.Current })
}

// inUse is the one version that answers while the Deployment is paused on the template
// of another: an earlier Rollout may have rejected that one.
func inUse(s *state.Snapshot) (found *kit.ReplicaSet) {
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
func withoutPods(d *state.Draft) (another bool) {
	replaceStale(d)
	if current := currentOf(&d.Snapshot); current != nil && d.Workload.Settled {
		deployed(d, current, "The Deployment was scaled to zero.")
		return true
	}
	letRoll(d, "The Deployment is scaled to zero, so its new template becomes stable without steps.")
	return false
}

// letRoll leaves the Deployment to its controller.
func letRoll(d *state.Draft, format string, args ...any) {
	d.Wait(v1alpha1.ReasonDeploying, format, args...)
	if d.Workload.Paused && d.Workload.HeldBySerin {
		d.Do(state.SetPaused{Paused: false})
	}
}

// makeStable makes a version the stable one.
func makeStable(d *state.Draft, r *kit.ReplicaSet) {
	d.Status.Stable = &v1alpha1.VersionStatus{Revision: r.Revision}
	record.ForgetRelease(d)
}

// deployed makes a version the stable one that came up without steps.
func deployed(d *state.Draft, r *kit.ReplicaSet, why string) {
	record.ForgetRelease(d)
	record.CloseRelease(d, v1alpha1.OutcomeDeployed, r.Revision, why)
	makeStable(d, r)
}

// settle removes all that a release left behind; then the Rollout is Ready.
func settle(d *state.Draft) {
	replaceStale(d)
	if d.Status.Step != nil && !d.Decided(v1alpha1.ActionRollBack) && d.Begun() {
		const why = "The template was set back to the stable version."
		record.CloseRelease(d, v1alpha1.OutcomeSuperseded, d.Status.Canary.Revision, why)
		record.NotifyOutcome(d, v1alpha1.NotifySuperseded, why)
	}
	record.ForgetRelease(d)
	record.IgnoreControl(d)
	if !endRelease(d) || !handOff(d, !d.GuardInForce) {
		return
	}
	stable, want := d.Stable(), d.Workload.Replicas
	if stable.Available < want || stable.Replicas != want {
		d.Wait(v1alpha1.ReasonDeploying, "Revision %s is stable; %d of %d pods are available.", stable.Revision, stable.Available, want)
		return
	}
	d.Say(v1alpha1.ReasonStable, "Revision %s is stable; all %d pods are available.", stable.Revision, want)
	d.State.Ready = true
}

// handOff is cleanUp and, after it, pausing the Deployment or not. What becomes of the
// weight is said when both are done.
func handOff(d *state.Draft, wantPaused bool) (done bool) {
	weight := d.Status.Weight
	if !routing.CleanUp(d) {
		return false
	}
	if paused(&d.Snapshot, wantPaused) {
		return true
	}
	pause(d, wantPaused)
	d.Status.Weight, d.Leaving = weight, weight != nil
	return false
}
