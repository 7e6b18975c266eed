// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Why pods are not handed over.
const (
	rolledCopies   = "since those of the canary read copies"
	rolledTemplate = "since its template is not that of the canary"
	rolledItself   = "since it was not held"
)

// adopt makes the release what the canary is.
func (p *pass) adopt() {
	if p.adoptedRevision() == 0 {
		if !p.upgraded() {
			p.beforeUpgrade()
			return
		}
		p.status.Release = &v1alpha1.CanaryHelmRelease{Revision: p.CanaryRelease.Spec.Version, AdoptedRevision: p.Release.Newest}
	}
	p.afterUpgrade()
}

// beforeUpgrade sends all traffic to the canary, holds the Deployments and has Helm
// upgrade the release.
func (p *pass) beforeUpgrade() {
	if !p.Release.Ours { // else Helm was called already, and nothing is as it was
		if !p.establish() || !p.serve(true) || !p.exact() {
			p.adopting()
			return
		}
	}
	if !p.hold() {
		return
	}
	p.upgrade()
}

// adopting says that what is under way is an adoption.
func (p *pass) adopting() {
	if p.state.progress {
		p.state.reason, p.state.message = v1alpha1.ReasonAdopting, shorten("Adopting: "+p.state.message)
	}
}

// exact reports whether every canary is at the Deployment's scale down to its last pod.
// One that is not is never handed over: the Deployment controller would scale both
// versions in proportion.
func (p *pass) exact() bool {
	for i := range p.Workloads {
		w := &p.Workloads[i]
		if c := p.canary(w); c != nil && !saturated(w, c) {
			p.wait(v1alpha1.ReasonWaitingForPods, "The canary of Deployment %s has %d pods and is being scaled to %d.", w.Name, c.Existing, w.Replicas)
			return false
		}
	}
	return true
}

func saturated(w *Workload, c *ReplicaSet) bool {
	return c.Replicas == w.Replicas && c.Existing == w.Replicas && c.Available == w.Replicas && c.Desired == w.Replicas
}

// hold pauses the Deployments that have a canary, so that the upgrade rolls none of them.
func (p *pass) hold() bool {
	done := true
	for i := range p.Workloads {
		w := &p.Workloads[i]
		if w.Presence != Present || w.Deleting || w.Paused && w.Held || w.find(func(r *ReplicaSet) bool { return r.Owner == OwnerCanary }) == nil {
			continue
		}
		done = false
		p.do(SetHold{Workload: w.Name, Paused: true})
		p.wait(v1alpha1.ReasonAdopting, "Adopting: holding the Deployment %s, so that the upgrade makes no pods.", w.Name)
	}
	return done
}

// afterUpgrade hands the canaries over, or replaces them, and cleans up.
func (p *pass) afterUpgrade() {
	done := true
	for i := range p.Workloads {
		done = p.settle(&p.Workloads[i]) && done
	}
	if done && p.dropServices(func(*Service) bool { return false }) && p.dropCopies(func(Copy) bool { return false }) {
		p.end()
		return
	}
	p.adopting()
}

// settle gives a workload the pods of its canary, or lets it make its own. It reports
// whether nothing is left to do.
func (p *pass) settle(w *Workload) bool {
	c := w.find(func(r *ReplicaSet) bool { return r.Marked && !r.Deleting })
	switch {
	case w.Presence == Absent || w.Deleting: // uninstalled meanwhile
		return p.dropCanaries(func(other *Workload, _ *ReplicaSet) bool { return other.Name != w.Name })
	case c == nil:
		return p.giveBack(w)
	case c.Owner != OwnerCanary:
		return p.handedOver(w, c)
	}
	if why := unfit(w, c); why != "" {
		return p.replace(w, c, why)
	}
	return p.handOver(w, c)
}

// unfit says why the Deployment can't take the canary's pods over; "" when it can.
func unfit(w *Workload, c *ReplicaSet) string {
	own := w.find(func(r *ReplicaSet) bool { return r.Owner == OwnerDeployment && r.Current && !r.gone() })
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
func (p *pass) handOver(w *Workload, c *ReplicaSet) bool {
	p.wait(v1alpha1.ReasonAdopting, "Handing the canary's pods over to the Deployment %s.", w.Name)
	if twin := w.find(func(r *ReplicaSet) bool { return r.Owner == OwnerDeployment && r.Current }); twin != nil {
		if !twin.Deleting {
			p.do(DeleteReplicaSet{target(twin)})
		}
		return false
	}
	if c.Replicas != w.Replicas || c.Desired != w.Replicas {
		p.do(ScaleReplicaSet{Target: target(c), Replicas: w.Replicas, Desired: w.Replicas})
		return false
	}
	if saturated(w, c) && p.keep(w, fullWeight) {
		p.do(ReleaseCanary{target(c)})
	}
	return false
}

// keep sees to it that the weights of a workload's Services stay what they are, and reports
// whether they are in effect, or nothing leads the Services any more.
func (p *pass) keep(w *Workload, weight int32) bool {
	done := true
	for _, s := range p.servicesOf(w.Name) {
		done = p.lead(s, even(s.Ports, weight)) && done
	}
	return done
}

// handedOver waits until the Deployment has the canary's pods and no others.
func (p *pass) handedOver(w *Workload, c *ReplicaSet) bool {
	p.workloadStatus(w.Name).HandedOver = true
	old := w.find(func(r *ReplicaSet) bool { return r.Owner == OwnerDeployment && r.UID != c.UID && !r.gone() })
	switch {
	case c.Owner != OwnerDeployment:
		p.wait(v1alpha1.ReasonAdopting, "Waiting for the Deployment %s to take the canary's pods over.", w.Name)
	case !c.Current:
		// It was changed again meanwhile: its new pods take the place of the canary's.
		return p.superseded(w, c)
	case old == nil:
		return p.giveBack(w)
	case c.Replicas != w.Replicas && w.Paused && w.Held:
		// Scaled in this very moment: a paused Deployment would keep both versions.
		p.do(SetHold{Workload: w.Name, Paused: false})
		p.wait(v1alpha1.ReasonAdopting, "Giving the Deployment %s back.", w.Name)
	default:
		p.wait(v1alpha1.ReasonAdopting, "The old pods of Deployment %s are being removed, %d are left.", w.Name, old.Existing)
	}
	p.keep(w, fullWeight)
	return false
}

// superseded returns the traffic before the Deployment replaces the pods that were handed
// over. It is held meanwhile, if it is not too late for that.
func (p *pass) superseded(w *Workload, c *ReplicaSet) bool {
	for _, s := range p.servicesOf(w.Name) {
		if s.Split.Presence == Present && s.Split.Ours {
			if !w.Paused && !c.gone() {
				p.do(SetHold{Workload: w.Name, Paused: true})
			}
			p.dropSplit(s)
			return false
		}
	}
	return p.giveBack(w)
}

// giveBack lets the Deployment go on by itself, and waits until it has all its pods.
func (p *pass) giveBack(w *Workload) bool {
	if w.Presence != Present || w.Deleting || !w.Held || !w.Paused {
		return true
	}
	p.do(SetHold{Workload: w.Name, Paused: false})
	p.wait(v1alpha1.ReasonAdopting, "Giving the Deployment %s back.", w.Name)
	return false
}

// replace lets the Deployment make pods of its own, sends the traffic to them, and removes
// the canary's. The canary keeps all traffic until they are ready.
func (p *pass) replace(w *Workload, c *ReplicaSet, why string) bool {
	p.workloadStatus(w.Name).Rolled = why
	p.wait(v1alpha1.ReasonAdopting, "The Deployment %s makes pods of its own, %s.", w.Name, why)
	if w.Held && w.Paused {
		p.do(SetHold{Workload: w.Name, Paused: false})
		return false
	}
	own := w.find(func(r *ReplicaSet) bool { return r.Owner == OwnerDeployment && r.Current && !r.Marked })
	if own == nil || !w.Settled || own.Available < w.Replicas {
		p.keepUnlessReturned(w)
		return false
	}
	for _, s := range p.servicesOf(w.Name) {
		if s.led() && (!p.follow(s, own) || s.Stable.Ready < min(own.Available, 1)) {
			return false
		}
	}
	if !p.withdraw(w) {
		return false
	}
	p.dropCanary(w, c)
	return false
}

// keepUnlessReturned keeps all traffic on the canary. Once it was returned to the
// Deployment's pods it stays there.
func (p *pass) keepUnlessReturned(w *Workload) {
	for _, s := range p.servicesOf(w.Name) {
		if s.led() && !s.asked(even(s.Ports, 0)) {
			p.route(s, even(s.Ports, fullWeight))
		}
	}
}
