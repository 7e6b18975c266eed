// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// delete gives everything back: first the traffic, then the Deployment. A
// promotion that was handed over is seen through; any other release is rolled
// back.
func (p *pass) delete() {
	if !slices.Contains(p.Rollout.Finalizers, v1alpha1.Finalizer) {
		p.say(v1alpha1.ReasonDeleting, "Nothing is left to give back.")
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
	p.status.Decision = nil // no rejected revision has to be known again
	if !p.endRelease() || !p.cleanUp() {
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

// handBack un-pauses the Deployment only if that rolls nothing unverified.
func (p *pass) handBack() {
	stable := p.stable()
	verified := p.status.Stable == nil || stable != nil && stable.Current
	p.do(HandBack{Paused: !verified})
	if !verified {
		p.note(true, v1alpha1.ReasonDeleting, "The Deployment %q stays paused, since its template is not the stable version; set the template back, or set spec.paused to false to roll it out", p.Rollout.Spec.WorkloadRef.Name)
	}
}
