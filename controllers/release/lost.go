// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Somebody can delete the ReplicaSet of the stable version in the middle of a release.
// The Deployment is held, so its controller does not make it again, and nobody else
// knows its template. What answers then is not taken away:
//
//	there is                                       | then
//	-----------------------------------------------+-------------------------------------------
//	an older version that the Deployment brings up | it is stable as soon as its pods are available
//	a canary with pods                             | it keeps them, and a person decides
//	a rejected template                            | it stays out, and a person decides
//	none of them                                   | the Deployment brings up its template

// stableLost reports whether that happened.
func (p *pass) stableLost() bool {
	if w := p.Workload; p.status.Stable == nil || w.ManagedBy != p.Rollout.Name || !w.Paused || !w.HeldBySerin {
		return false
	}
	heir := p.find(func(r *ReplicaSet) bool {
		return r.Owner == OwnerDeployment && !r.Current && r.Replicas > 0 && !r.Deleting
	})
	last := p.lastCopy()
	switch {
	case heir != nil:
		p.succeed(heir)
	case p.rejected():
		p.say(v1alpha1.ReasonStableLost, "%s Revision %s was rolled back and stays out. Set the template back to bring the stable version up again, or to another one.", p.loss(), p.status.Decision.Revision)
		p.state.stalled = true
	case last != nil:
		p.keep(last)
	default:
		return false
	}
	return true
}

// lastCopy is the canary that is the only version with pods.
func (p *pass) lastCopy() *ReplicaSet {
	return p.find(func(r *ReplicaSet) bool { return r.Owner == OwnerRollout && r.Current && !r.gone() && !r.Deleting })
}

func (p *pass) loss() string {
	return "The ReplicaSet of the stable revision " + p.status.Stable.Revision + " was deleted."
}

// succeed makes an older version the stable one: a paused Deployment without pods
// brings up the newest of its old ReplicaSets.
func (p *pass) succeed(heir *ReplicaSet) {
	if n := p.Workload.Replicas; heir.Available < n {
		p.say(v1alpha1.ReasonDeploying, "%s The Deployment brings up revision %s instead: %d of %d pods are available.", p.loss(), heir.Revision, heir.Available, n)
		p.state.progress = true
		return
	}
	p.note(true, v1alpha1.ReasonStableLost, "%s Revision %s is stable instead", p.loss(), heir.Revision)
	p.status.Stable = &v1alpha1.VersionStatus{Revision: heir.Revision}
	if s := p.status.Step; s != nil && !p.decided(v1alpha1.ActionPromote) {
		p.enterStep(int(s.Index)) // it has to prove itself beside another version
	}
	if p.refusal == nil {
		p.converge()
	}
}

// keep leaves the canary its pods and its traffic, since there is nothing to go back to.
// Only a person may give it all of it.
func (p *pass) keep(last *ReplicaSet) {
	p.canary, p.revision = last, last.Revision
	if c := p.order(); c != nil && c.Action == v1alpha1.ControlPromoteFull && p.refusal == nil {
		p.obey()
	}
	if p.decided(v1alpha1.ActionPromote) && p.refusal == nil {
		p.proceed()
		return
	}
	p.say(v1alpha1.ReasonStableLost, "%s There is nothing to go back to, so the canary keeps its pods and its traffic. Set spec.control to PromoteFull for revision %s, or set the template back to bring the stable version up again.", p.loss(), p.revision)
	p.state.stalled = true
}

// bequeath makes the canary the stable version when the Rollout is deleted and there
// is no other one. It reports whether that is under way.
func (p *pass) bequeath() bool {
	last := p.lastCopy()
	if p.status.Stable == nil || p.stable() != nil || last == nil || p.without() || p.find(func(r *ReplicaSet) bool { return r.Owner == OwnerDeployment && !r.gone() }) != nil {
		return false
	}
	p.say(v1alpha1.ReasonDeleting, "%s Handing the canary's pods over to the Deployment, since they are all there is.", p.loss())
	p.state.progress = true
	p.status.Stable = &v1alpha1.VersionStatus{Revision: last.Revision}
	p.do(ReleaseCanary{target(last)})
	return true
}
