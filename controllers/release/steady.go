// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
)

// firstDeployment waits until the Deployment controller has brought up one
// version in full: that is the stable one. There is no canary and no analysis.
func (p *pass) firstDeployment() {
	p.status.Stable = nil
	current := p.find(func(r *ReplicaSet) bool { return r.Owner == OwnerDeployment && r.Current })
	if current != nil && p.Workload.Settled {
		p.deployed(current, "The first version.")
		return
	}
	if before := p.inUse(); p.Workload.Paused && before != nil {
		p.close(v1alpha1.OutcomeDeployed, before.Revision, "It had all pods while the Deployment was paused on another template.")
		p.record(before)
		p.say(v1alpha1.ReasonPreparing, "Revision %s is stable; the Deployment's template is another one, and is released by steps.", before.Revision)
		p.state.progress = true
		p.wake(p.Now)
		return
	}
	if p.Workload.Paused && !p.Workload.HeldBySerin {
		p.say(v1alpha1.ReasonDeploying, "The Deployment is paused and its first version is not up; set its spec.paused to false.")
		return
	}
	p.letRoll("Waiting for the first version: %d of %d pods are available.", p.Workload.Available, p.Workload.Replicas)
}

// inUse is the one version that answers while the Deployment is paused on the template
// of another: a former Rollout may have rejected that one.
func (p *pass) inUse() (found *ReplicaSet) {
	for i := range p.ReplicaSets {
		switch r := &p.ReplicaSets[i]; {
		case r.gone() || r.Owner != OwnerDeployment:
		case r.Current || found != nil || r.Available < r.Replicas:
			return nil
		default:
			found = r
		}
	}
	return found
}

// idle reports whether a new template meets no pods and no traffic: it needs no steps,
// unless it was rolled back.
func (p *pass) idle() bool {
	return p.Workload.Replicas == 0 && p.Split.Presence == Absent && p.status.Step == nil && !p.rejected()
}

// withoutPods makes a new template stable without steps, since there is no traffic
// to split and nothing to compare.
func (p *pass) withoutPods() {
	current := p.find(func(r *ReplicaSet) bool { return r.Owner == OwnerDeployment && r.Current })
	if current != nil && p.Workload.Settled {
		p.deployed(current, "The Deployment was scaled to zero.")
		return
	}
	p.letRoll("The Deployment is scaled to zero, so its new template becomes stable without steps.")
}

// unguarded lets a version that the Deployment controller already rolls out past
// Serin come up in full, and calls it stable then: to stop it half way would
// leave users with two versions. A canary is taken out first.
func (p *pass) unguarded(r *ReplicaSet) {
	if p.Split.Presence != Absent || p.canaryPods(nil) {
		if p.ensureHold(true) && p.endRelease() {
			p.cleanUp()
		}
		return
	}
	if !p.Workload.Settled {
		p.letRoll("Revision %s is being rolled out past Serin, without steps: %d of %d pods are available.", r.Revision, p.Workload.Available, p.Workload.Replicas)
		p.state.reason = v1alpha1.ReasonUnguardedChange
		return
	}
	p.note(true, v1alpha1.ReasonUnguardedChange, "Revision %s was rolled out past Serin, without steps, since nothing held the Deployment when its template changed", r.Revision)
	p.deployed(r, "Rolled out past Serin.")
}

// letRoll leaves the Deployment to its controller.
func (p *pass) letRoll(format string, args ...any) {
	p.say(v1alpha1.ReasonDeploying, format, args...)
	p.state.progress = true
	if p.Workload.Paused && p.Workload.HeldBySerin {
		p.do(SetHold{Paused: false})
	}
}

// record makes a version the stable one.
func (p *pass) record(r *ReplicaSet) {
	p.status.Stable = &v1alpha1.VersionStatus{Revision: r.Revision}
	p.forgetRelease()
}

// deployed makes a version the stable one that came up without steps.
func (p *pass) deployed(r *ReplicaSet, why string) {
	p.forgetRelease()
	p.close(v1alpha1.OutcomeDeployed, r.Revision, why)
	p.record(r)
	p.settle(r)
}

// forgetRelease clears what belongs to one release.
func (p *pass) forgetRelease() {
	p.keepDispersion()
	p.status.Canary, p.status.Step, p.status.Decision, p.status.Analysis = nil, nil, nil, nil
	p.status.Interventions, p.status.Hooks = nil, nil
}

// settle takes away whatever a release left behind; then the Rollout is Ready.
func (p *pass) settle(stable *ReplicaSet) {
	if p.status.Step != nil && !p.decided(v1alpha1.ActionRollBack) && p.begun() {
		p.close(v1alpha1.OutcomeSuperseded, p.status.Canary.Revision, "The template was set back to the stable version.")
		p.tellOutcome(v1alpha1.NotifySuperseded, "The template was set back to the stable version.")
	}
	p.forgetRelease()
	p.ignoreOrder()
	if !p.endRelease() || !p.handOff(!p.GuardInForce) {
		return
	}
	if stable.Available < p.Workload.Replicas || stable.Replicas != p.Workload.Replicas {
		p.say(v1alpha1.ReasonDeploying, "Revision %s is stable; %d of %d pods are available.", stable.Revision, stable.Available, p.Workload.Replicas)
		p.state.progress = true
		return
	}
	p.say(v1alpha1.ReasonStable, "Revision %s is stable; all %d pods are available.", stable.Revision, p.Workload.Replicas)
	p.state.ready = true
}

// ensureHold pauses the Deployment or not, and reports whether it is so.
func (p *pass) ensureHold(paused bool) bool {
	w := p.Workload
	if p.Rival != "" && w.ManagedBy != p.Rollout.Name {
		return true // the older Rollout holds it, or not
	}
	if w.Paused == paused && w.ManagedBy == p.Rollout.Name && (!paused || w.HeldBySerin) {
		return true
	}
	p.do(SetHold{Paused: paused})
	if p.state.reason == "" {
		p.say(v1alpha1.ReasonPreparing, "Waiting until the Deployment is held on its new template.")
		if !paused {
			p.say(v1alpha1.ReasonCleaningUp, "Waiting until the Deployment is not held any more.")
		}
		p.state.progress = true
	}
	return false
}
