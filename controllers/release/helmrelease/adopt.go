// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// Why pods are not handed over.
const (
	rolledCopies   = "since those of the canary read copies"
	rolledTemplate = "since its template is not that of the canary"
	rolledItself   = "since it was not paused"
)

// adopt sends all traffic to the canary, and then has Helm make the release what it is.
func adopt(d *draft) {
	if establish(d) && serve(d, true) && exact(d) {
		holdAndUpgrade(d)
		return
	}
	adopting(d)
}

// holdAndUpgrade holds the Deployments and has Helm upgrade the release.
func holdAndUpgrade(d *draft) {
	if hold(d) {
		upgrade(d)
	}
}

// adopting says that what is under way is an adoption.
func adopting(d *draft) {
	if d.State.Progress && d.decided(v1alpha1.CanaryTransitionAdopted) {
		d.State.Reason, d.State.Message = v1alpha1.ReasonAdopting, kit.Shorten("Adopting: "+d.State.Message)
	}
}

// exact reports whether every canary is at the Deployment's scale down to its last pod.
// One that is not is never handed over: the Deployment controller would scale both
// versions in proportion.
func exact(d *draft) bool {
	for i := range d.Workloads {
		w := &d.Workloads[i]
		if c := d.canary(w); c != nil && !versions.Saturated(c, w.Replicas) {
			d.Wait(v1alpha1.ReasonWaitingForPods, "The canary of Deployment %s has %d pods and is being scaled to %d.", w.Name, c.Existing, w.Replicas)
			return false
		}
	}
	return true
}

// hold pauses the Deployments that have a canary, so that the upgrade rolls none of them.
func hold(d *draft) bool {
	done := true
	for i := range d.Workloads {
		w := &d.Workloads[i]
		if w.Presence != kit.Present || w.Deleting || w.Paused && w.Held || w.find(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerSerin }) == nil {
			continue
		}
		done = false
		d.Do(SetHold{Workload: w.Name, Paused: true})
		d.Wait(v1alpha1.ReasonAdopting, "Adopting: holding the Deployment %s, so that the upgrade makes no pods.", w.Name)
	}
	return done
}

// replaceAll hands the canaries over, or replaces them, and cleans up. It reports whether
// that is done.
func replaceAll(d *draft) (done bool) {
	done = true
	for i := range d.Workloads {
		done = settle(d, &d.Workloads[i]) && done
	}
	if done && dropServices(d, func(*Service) bool { return false }) && dropCopies(d, func(Copy) bool { return false }) {
		end(d)
		return true
	}
	adopting(d)
	return false
}

// settle gives a workload the pods of its canary, or lets it make its own. It reports
// whether nothing is left to do.
func settle(d *draft, w *Workload) bool {
	c := w.find(func(r *kit.ReplicaSet) bool { return r.Marked && !r.Deleting })
	switch {
	case w.Presence == kit.Absent || w.Deleting: // uninstalled meanwhile
		return dropCanaries(d, func(other *Workload, _ *kit.ReplicaSet) bool { return other.Name != w.Name })
	case c == nil:
		return restore(d, w)
	case c.Owner != kit.OwnerSerin:
		return handedOver(d, w, c)
	}
	if why := unfit(w, c); why != "" {
		return replace(d, w, c, why)
	}
	return handOver(d, w, c)
}

// unfit says why the Deployment can't adopt the canary's pods; "" when it can.
func unfit(w *Workload, c *kit.ReplicaSet) string {
	own := w.find(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && r.Current && !r.Gone() })
	switch {
	case c.Rolls:
		return rolledCopies
	case !c.Current:
		return rolledTemplate
	case own != nil || !w.Paused:
		return rolledItself
	}
	return ""
}

// handOver releases the canary to the Deployment. An empty ReplicaSet of an earlier time
// with the same template goes first, since the Deployment controller would prefer it.
func handOver(d *draft, w *Workload, c *kit.ReplicaSet) bool {
	d.Wait(v1alpha1.ReasonAdopting, "Handing the canary's pods over to the Deployment %s.", w.Name)
	if twin := w.find(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && r.Current }); twin != nil {
		versions.Delete(&d.Draft, twin)
		return false
	}
	versions.Scale(&d.Draft, c, w.Replicas, w.Replicas)
	versions.HandOver(&d.Draft, c, w.Replicas, "", func() bool { return keep(d, w, fullWeight) })
	return false
}

// keep keeps the weights of a workload's Services what they are, and reports
// whether they are live, or no split leads the Services any more.
func keep(d *draft, w *Workload, weight int32) bool {
	done := true
	for _, s := range d.servicesOf(w.Name) {
		done = lead(d, s, even(s.Ports, weight)) && done
	}
	return done
}

// handedOver waits until the Deployment has the canary's pods and no others.
func handedOver(d *draft, w *Workload, c *kit.ReplicaSet) bool {
	st := workloadStatus(d, w.Name)
	st.HandedOver = true
	if c.Owner == kit.OwnerDeployment && c.Current {
		st.Rolled = "" // also where it seemed for a moment that it makes its own
	}
	old := versions.Others(w.ReplicaSets, c)
	switch {
	case c.Owner != kit.OwnerDeployment:
		d.Wait(v1alpha1.ReasonAdopting, "Waiting for the Deployment %s to adopt the canary's pods.", w.Name)
	case !c.Current:
		// It was changed again meanwhile: its new pods take the place of the canary's.
		return superseded(d, w, c)
	case len(old) == 0:
		return restore(d, w)
	case c.Replicas != w.Replicas && w.Paused && w.Held:
		// Scaled in the meantime: a paused Deployment would keep both versions.
		d.Do(SetHold{Workload: w.Name, Paused: false})
		d.Wait(v1alpha1.ReasonAdopting, "Restoring the Deployment %s.", w.Name)
	default:
		d.Wait(v1alpha1.ReasonAdopting, "The old pods of Deployment %s are being removed, %d are left.", w.Name, old[0].Existing)
	}
	keep(d, w, fullWeight)
	return false
}

// superseded returns the traffic before the Deployment replaces the pods that were handed
// over. It is held meanwhile, if it is not too late for that.
func superseded(d *draft, w *Workload, c *kit.ReplicaSet) bool {
	for _, s := range d.servicesOf(w.Name) {
		if s.Split.Presence == kit.Present && s.Split.Ours {
			if !w.Paused && !c.Gone() {
				d.Do(SetHold{Workload: w.Name, Paused: true})
			}
			dropSplit(d, s)
			return false
		}
	}
	return restore(d, w)
}

// restore ends the pause of the Deployment, and reports whether it is ended.
func restore(d *draft, w *Workload) bool {
	if w.Presence != kit.Present || w.Deleting || !w.Held || !w.Paused {
		return true
	}
	d.Do(SetHold{Workload: w.Name, Paused: false})
	d.Wait(v1alpha1.ReasonAdopting, "Restoring the Deployment %s.", w.Name)
	return false
}

// replace lets the Deployment make pods of its own, sends the traffic to them, and removes
// the canary's. The canary keeps all traffic until they are ready.
func replace(d *draft, w *Workload, c *kit.ReplicaSet, why string) bool {
	workloadStatus(d, w.Name).Rolled = why
	d.Wait(v1alpha1.ReasonAdopting, "The Deployment %s makes pods of its own, %s.", w.Name, why)
	if w.Held && w.Paused {
		d.Do(SetHold{Workload: w.Name, Paused: false})
		return false
	}
	own := w.find(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && r.Current && !r.Marked })
	if own == nil || !w.Settled || own.Available < w.Replicas {
		keepUnlessReturned(d, w)
		return false
	}
	if followAll(d, w, own) && withdraw(d, w) {
		dropCanary(d, w, c)
	}
	return false
}

// followAll has the Services of stable select a version that has endpoints there.
func followAll(d *draft, w *Workload, version *kit.ReplicaSet) bool {
	for _, s := range d.servicesOf(w.Name) {
		if s.led() && (!follow(d, s, version) || s.Stable.Ready < min(version.Available, 1)) {
			return false
		}
	}
	return true
}

// keepUnlessReturned keeps all traffic on the canary. Once it was returned to the
// Deployment's pods it stays there.
func keepUnlessReturned(d *draft, w *Workload) {
	for _, s := range d.servicesOf(w.Name) {
		if s.led() && !s.requests(even(s.Ports, 0)) {
			route(d, s, even(s.Ports, fullWeight))
		}
	}
}
