// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/versions"
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
	held := unrecorded(&d.Snapshot)
	before := inUse(&d.Snapshot, held)
	switch {
	case w.Paused && before != nil:
		record.CloseRelease(d, v1alpha1.OutcomeDeployed, before.Revision, "It had all pods while the Deployment was paused on another template.")
		makeStable(d, before)
		if other := heldOn(&d.Snapshot); other != nil && other.Rejected != "" {
			record.RejectAgain(d, other.Revision, other.Rejected)
		}
		d.Wait(v1alpha1.ReasonPreparing, "Revision %s is stable; the Deployment's template differs, and is released step by step.", before.Revision)
		d.Wake(d.Now)
	case held != nil:
		bringBack(d, held)
	case w.Paused && w.Unseen:
		d.Wait(v1alpha1.ReasonDeploying, "Waiting until the controller of Deployments has seen the Deployment.")
	case w.Paused && !w.HeldBySerin:
		d.Say(v1alpha1.ReasonDeploying, "The Deployment is paused and its first version is not up; set its annotation %s to \"true\", and its spec.paused to false.", v1alpha1.AnnotationResume)
	default:
		letRoll(d, "Waiting for the first version: %d of %d pods are available.", w.Available, w.Replicas)
	}
	return false
}

// unrecorded is the version that has the pods while Serin holds the Deployment on another one, which
// was never promoted, although no record says so: the record was lost, as by the restore of a
// backup.
func unrecorded(s *state.Snapshot) *kit.ReplicaSet {
	w, other := &s.Workload, heldOn(s)
	if !w.Paused || !w.HeldBySerin && w.ManagedBy != s.Rollout.Name || other != nil && !other.Gone() && !other.Unpromoted {
		return nil
	}
	return largest(s.ReplicaSets, func(r *kit.ReplicaSet) bool { return r.Owner != kit.OwnerSerin && !r.Current && r.Replicas > 0 })
}

// heldOn is the ReplicaSet of the template that is the Deployment's, or is about to be.
func heldOn(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool { return r.Owner != kit.OwnerSerin && r.Current })
}

// largest is the version with the most available pods of those that match and have any, and with
// the most pods of several.
func largest(all []kit.ReplicaSet, match func(*kit.ReplicaSet) bool) (found *kit.ReplicaSet) {
	for i := range all {
		r := &all[i]
		if match(r) && !r.Gone() && (found == nil || cmp.Or(cmp.Compare(r.Available, found.Available), cmp.Compare(r.Replicas, found.Replicas)) > 0) {
			found = r
		}
	}
	return found
}

// bringBack leaves all pods to the version whose record was lost, which is stable as soon as they
// are available. The other one is released by steps then.
func bringBack(d *state.Draft, held *kit.ReplicaSet) {
	d.Wait(v1alpha1.ReasonDeploying, "The Deployment is held on another template than that of revision %s, which has the pods: waiting until they are available, %d of %d are. "+
		"To roll the template out without steps instead, set the Deployment's annotation %s to \"true\", and its spec.paused to false.", held.Revision, held.Available, d.Workload.Replicas, v1alpha1.AnnotationResume)
	if other := heldOn(&d.Snapshot); other != nil {
		d.State.Message = kit.Shorten(strings.TrimSpace(d.State.Message + " " + emptyAdopted(d, held, other)))
	}
}

// emptyAdopted takes the pods of a version that the Deployment adopted beside stable, or says why it
// keeps them.
func emptyAdopted(d *state.Draft, stable, r *kit.ReplicaSet) (kept string) {
	switch {
	case ousts(&d.Snapshot, r):
		return fmt.Sprintf("Revision %s has all its pods, so the controller of Deployments removes those of revision %s.", r.Revision, stable.Revision)
	case stable.Available == 0 && r.Available > 0 && d.Split.Presence == kit.Absent:
		return fmt.Sprintf("Revision %s keeps its pods until one of revision %s answers.", r.Revision, stable.Revision)
	}
	versions.Empty(&d.Draft, r)
	return ""
}

// ousts is true for the version of the template once it has all pods: the controller of a
// Deployment, also of a paused one, then removes those of all others. To take its pods at the same
// time would leave none.
func ousts(s *state.Snapshot, r *kit.ReplicaSet) bool {
	n := s.Workload.Replicas
	return r.Current && r.Replicas == n && r.Desired == n && r.Available >= n
}

// currentOf is the Deployment's own ReplicaSet of its template.
func currentOf(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && r.Current })
}

// inUse is the one version that answers while the Deployment is paused on the template
// of another: an earlier Rollout may have rejected that one. It is the one whose record was lost as
// soon as no other takes a part of the pods.
func inUse(s *state.Snapshot, held *kit.ReplicaSet) (found *kit.ReplicaSet) {
	if other := heldOn(s); held != nil {
		if held.Owner != kit.OwnerDeployment || held.Available < held.Replicas || other != nil && !other.Gone() {
			return nil
		}
		return held
	}
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
		const why = "The template was reverted to the stable version."
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
