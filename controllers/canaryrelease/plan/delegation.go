// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// What a Rollout decides holds for the content that it has judged, and for no other:
//
//	spec.delegation                  | a port with a share     | the CanaryRelease
//	---------------------------------+-------------------------+-------------------------------------------------
//	absent                           | what spec.services says | ends as spec.transition says
//	names a Rollout, nothing written | 0 %                     | the same
//	written for another content      | 0 %                     | the same
//	written by another Rollout       | 0 %                     | the same
//	written for this content         | spec.delegation.weight  | spec.transition, else spec.delegation.transition
//
// A port with a weight of 0 in spec.services keeps it.

// content is the digest of what the canary is, or is about to be.
func (p *pass) content() string {
	if p.Proposal.Known {
		return p.Proposal.Digest
	}
	return p.status.ManifestDigest
}

// delegated reports whether what the Rollout decided is about the present content.
func (p *pass) delegated() bool {
	d := p.CanaryRelease.Spec.Delegation
	return d != nil && d.By == d.Rollout && d.ManifestDigest != "" && d.ManifestDigest == p.content()
}

// transition is how the CanaryRelease is to end, and who says so.
func (p *pass) transition() (t v1alpha1.CanaryTransition, by string) {
	spec := &p.CanaryRelease.Spec
	// While nobody can say what the content is by now, the Rollout may mean another one.
	unknown := !p.Proposal.Known && p.Release.Deployed == spec.Version && p.status.Decision == nil
	if spec.Transition != v1alpha1.CanaryTransitionNone || !p.delegated() || unknown {
		return spec.Transition, fmt.Sprintf("spec.transition is %s", spec.Transition)
	}
	if spec.Delegation.Transition == v1alpha1.CanaryTransitionAdopted {
		return spec.Delegation.Transition, fmt.Sprintf("the Rollout %q has promoted it", spec.Delegation.Rollout)
	}
	return spec.Delegation.Transition, fmt.Sprintf("the Rollout %q has rolled it back", spec.Delegation.Rollout)
}

// wanted are the weights of the ports of a Service.
func (p *pass) wanted(s *Service) []PortWeight {
	out := wanted(&p.CanaryRelease.Spec, s)
	if p.CanaryRelease.Spec.Delegation == nil {
		return out
	}
	var weight int32
	if w := p.CanaryRelease.Spec.Delegation.Weight; w != nil && p.delegated() {
		weight = *w
	}
	for i := range out {
		if out[i].Weight > 0 {
			out[i].Weight = weight
		}
	}
	return out
}

// checkDelegation refuses a CanaryRelease whose Rollout could give the canary nothing.
func (p *pass) checkDelegation() *refusal {
	spec := &p.CanaryRelease.Spec
	if spec.Delegation == nil || len(p.shared()) > 0 {
		return nil
	}
	return refuse(v1alpha1.ReasonInvalidSpec, "spec.services: gives the canary no share of any port, so that the Rollout %q could send it nothing; remove a weight of 0", spec.Delegation.Rollout)
}

// shared are the Services with a port that a Rollout decides about.
func (p *pass) shared() []*Service {
	var out []*Service
	for i := range p.Services {
		// Which are wanted is not known while Helm can't be asked; those that are led are.
		if s := &p.Services[i]; (s.Wanted || s.led()) && largest(wanted(&p.CanaryRelease.Spec, s)) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// reportDelegation says which weight is in effect on all ports that a Rollout decides about.
func (p *pass) reportDelegation() {
	if p.CanaryRelease.Spec.Delegation == nil || p.ended() {
		p.status.Delegation = nil
		return
	}
	weight, even, led := p.served()
	switch {
	case !led:
		p.status.Delegation = nil // requests pass no split, and nobody can say what the canary gets
	case even:
		p.status.Delegation = &v1alpha1.CanaryDelegationStatus{Weight: weight, Programmed: true}
	case p.status.Delegation != nil:
		p.status.Delegation = &v1alpha1.CanaryDelegationStatus{Weight: p.status.Delegation.Weight}
	}
}

// served is the weight in effect on every port that a Rollout decides about, whether it is
// the same on all of them, and whether a split leads any.
func (p *pass) served() (weight int32, same, led bool) {
	weight, same = -1, true
	for _, s := range p.shared() {
		if !s.led() {
			same = false
			continue
		}
		led = true
		same = same && s.Split.InEffect && s.Split.Requested != nil
		for _, share := range wanted(&p.CanaryRelease.Spec, s) {
			i := slices.IndexFunc(s.Split.Requested, func(w PortWeight) bool { return w.Port == share.Port })
			if share.Weight == 0 {
				continue
			}
			if i < 0 || weight >= 0 && s.Split.Requested[i].Weight != weight {
				same = false
				continue
			}
			weight = s.Split.Requested[i].Weight
		}
	}
	return weight, same && weight >= 0, led
}
