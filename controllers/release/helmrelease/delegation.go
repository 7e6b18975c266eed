// SPDX-License-Identifier: Apache-2.0

package helmrelease

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
func (s *snapshot) content() string {
	if s.Proposal.Known {
		return s.Proposal.Digest
	}
	return s.status.ManifestDigest
}

// delegated reports whether what the Rollout decided is about the present content.
func (s *snapshot) delegated() bool {
	d := s.CanaryRelease.Spec.Delegation
	return d != nil && d.By == d.Rollout && d.ManifestDigest != "" && d.ManifestDigest == s.content()
}

// transition is how the CanaryRelease is to end, and who says so.
func (s *snapshot) transition() (t v1alpha1.CanaryTransition, by string) {
	spec := &s.CanaryRelease.Spec
	// While the present content is not known, the Rollout may mean another one.
	unknown := !s.Proposal.Known && s.Release.Deployed == spec.Version && s.status.Decision == nil
	if spec.Transition != v1alpha1.CanaryTransitionNone || !s.delegated() || unknown {
		return spec.Transition, fmt.Sprintf("spec.transition is %s", spec.Transition)
	}
	if spec.Delegation.Transition == v1alpha1.CanaryTransitionAdopted {
		return spec.Delegation.Transition, fmt.Sprintf("the Rollout %q has promoted it", spec.Delegation.Rollout)
	}
	return spec.Delegation.Transition, fmt.Sprintf("the Rollout %q has rolled it back", spec.Delegation.Rollout)
}

// wanted are the weights of the ports of a Service.
func (s *snapshot) wanted(svc *Service) []PortWeight {
	out := wanted(&s.CanaryRelease.Spec, svc)
	if s.CanaryRelease.Spec.Delegation == nil {
		return out
	}
	var weight int32
	if w := s.CanaryRelease.Spec.Delegation.Weight; w != nil && s.delegated() {
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
func checkDelegation(s *snapshot) *refusal {
	spec := &s.CanaryRelease.Spec
	if spec.Delegation == nil || len(s.shared()) > 0 {
		return nil
	}
	return refuse(v1alpha1.ReasonInvalidSpec, "spec.services: gives the canary no share of any port, so the Rollout %q could send it no traffic; remove a weight of 0", spec.Delegation.Rollout)
}

// shared are the Services with a port that a Rollout decides about.
func (s *snapshot) shared() []*Service {
	var out []*Service
	for i := range s.Services {
		// Which are wanted is not known while Helm does not answer; those that a split leads are.
		if svc := &s.Services[i]; (svc.Wanted || svc.led()) && largest(wanted(&s.CanaryRelease.Spec, svc)) > 0 {
			out = append(out, svc)
		}
	}
	return out
}

// reportDelegation says which weight is live on all ports that a Rollout decides about.
func reportDelegation(d *draft) {
	if d.CanaryRelease.Spec.Delegation == nil || d.ended() {
		d.status.Delegation = nil
		return
	}
	weight, even, led := d.served()
	switch {
	case !led:
		d.status.Delegation = nil // requests pass no split, and what the canary gets is not known
	case even:
		d.status.Delegation = &v1alpha1.CanaryDelegationStatus{Weight: weight, Programmed: true}
	case d.status.Delegation != nil:
		d.status.Delegation = &v1alpha1.CanaryDelegationStatus{Weight: d.status.Delegation.Weight}
	}
}

// served is the live weight of every port that a Rollout decides about, whether it is
// the same on all of them, and whether a split leads any.
func (s *snapshot) served() (weight int32, same, led bool) {
	weight, same = -1, true
	for _, svc := range s.shared() {
		if !svc.led() {
			same = false
			continue
		}
		led = true
		same = same && svc.Split.Programmed && svc.Split.Requested != nil
		for _, share := range wanted(&s.CanaryRelease.Spec, svc) {
			i := slices.IndexFunc(svc.Split.Requested, func(w PortWeight) bool { return w.Port == share.Port })
			if share.Weight == 0 {
				continue
			}
			if i < 0 || weight >= 0 && svc.Split.Requested[i].Weight != weight {
				same = false
				continue
			}
			weight = svc.Split.Requested[i].Weight
		}
	}
	return weight, same && weight >= 0, led
}
