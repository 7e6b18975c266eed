// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// delete gives everything back: first the traffic, then the Deployment. A
// promotion that was handed over is seen through; any other release is rolled
// back.
func (p *pass) delete() {
	p.settings, _ = parseSettings(&p.Rollout.Spec, p.RouterName, p.Freezes, p.Metrics) // what can't be read has its default
	if !slices.Contains(p.Rollout.Finalizers, v1alpha1.Finalizer) {
		p.say(v1alpha1.ReasonDeleting, "Nothing is left to give back.")
		return
	}
	if p.delegated() {
		p.deleteDelegated()
		return
	}
	if p.leavePath() {
		p.state.reason = v1alpha1.ReasonDeleting
		return
	}
	if r := p.promoted(); r != nil && p.Workload.Presence == Present && !p.Workload.Deleting {
		p.adopt(r)
		return
	}
	if p.bequeath() {
		return
	}
	p.status.Decision = nil // no rejected revision has to be known again
	if !p.takeBack() || !p.cleanUp() {
		p.state.reason = v1alpha1.ReasonDeleting
		return
	}
	p.say(v1alpha1.ReasonDeleting, "Handing the Deployment back.")
	p.state.progress = true
	if p.Workload.Presence == Present && p.Workload.ManagedBy == p.Rollout.Name {
		p.handBack()
	}
	p.do(RemoveFinalizer{})
}

// takeBack ends the release. A router that has not confirmed by the deadline that the
// canary gets no traffic, counted from the deletion, is not waited for any more: then
// the split goes first, and its weights with it, while the pods of both versions
// still answer behind the Service.
func (p *pass) takeBack() bool {
	if !p.passed(p.Rollout.DeletionTimestamp.Add(p.deadline)) {
		return p.endRelease()
	}
	if p.ensureNoCanaryTraffic() {
		return p.endRelease()
	}
	p.actions = nil
	p.cleanUp()
	p.say(v1alpha1.ReasonDeleting, "Returning the traffic to the Service %q, since the router did not confirm within %s that the canary gets none: %s.", p.Rollout.Spec.Service, brief(p.deadline), p.trafficWait(Route{}))
	return false
}

// handBack un-pauses the Deployment only if that rolls nothing unverified.
func (p *pass) handBack() {
	stable := p.stable()
	verified := p.status.Stable == nil || stable != nil && stable.Current
	p.do(HandBack{Paused: !verified})
	if !verified {
		p.note(true, v1alpha1.ReasonDeleting, "The Deployment %q stays paused, since its template is not the stable version; set the template back, or set spec.paused to false to roll it out", p.Rollout.Spec.WorkloadRef.Name)
	}
}
