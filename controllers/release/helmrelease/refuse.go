// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// maxName is the most characters of a root Service's name: those of its versions are
// seven longer.
const maxName = 56

// Bounds of the lists in the status.
const (
	maxWorkloads = 32
	maxCopies    = 128
)

// refusal is why no canary can be made.
type refusal struct {
	reason  v1alpha1.Reason
	message string
}

func refuse(reason v1alpha1.Reason, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, args...)}
}

// refused is why no canary can be made; nil when one can.
func refused(s *snapshot) *refusal {
	for _, check := range []func(*snapshot) *refusal{checkRelease, checkProposal, checkWorkloads, checkServices, checkSpec, checkDelegation, checkCopies} {
		if why := check(s); why != nil {
			return why
		}
	}
	return nil
}

func checkRelease(s *snapshot) *refusal {
	r, spec := s.Release, s.CanaryRelease.Spec
	switch {
	case s.Rival != "":
		return refuse(v1alpha1.ReasonConflict, "The older CanaryRelease %q already tries the release %s; wait until it has ended, or delete it", s.Rival, spec.Release)
	case r.Presence == kit.Absent, r.Newest == 0:
		return refuse(v1alpha1.ReasonReleaseNotFound, "There is no Helm release %s in this namespace; correct spec.release, or install it", spec.Release)
	case r.Newest < spec.Version:
		return refuse(v1alpha1.ReasonReleaseNotFound, "Release %s has no revision %d, its newest is %d; correct spec.version", spec.Release, spec.Version, r.Newest)
	case r.Deployed != spec.Version:
		return refuse(v1alpha1.ReasonReleaseNotDeployed, "Revision %d of release %s is %s and not deployed; wait for Helm, or roll back to a revision that is", spec.Version, spec.Release, word(r.Status))
	}
	return nil
}

func word(status string) string {
	if status == "" {
		return "unknown"
	}
	return status
}

func checkProposal(s *snapshot) *refusal {
	switch {
	case s.Proposal.Problem != "":
		return refuse(v1alpha1.ReasonInvalidSpec, "%s", s.Proposal.Problem)
	case len(s.Proposal.Refused) > 0:
		return refuse(v1alpha1.ReasonRefused, "No canary can be made: %s", strings.Join(s.Proposal.Refused, "; "))
	}
	return nil
}

func checkWorkloads(s *snapshot) *refusal {
	exposed := 0
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if !w.Candidate {
			continue
		}
		if w.Presence != kit.Present || w.Deleting {
			return refuse(v1alpha1.ReasonWorkloadNotFound, "The Deployment %q of the release does not exist; upgrade the release to bring it back", w.Name)
		}
		if !s.exposed(w) {
			continue
		}
		if why := checkWorkload(s, w); why != nil {
			return why
		}
		exposed++
	}
	switch {
	case exposed > maxWorkloads:
		return refuse(v1alpha1.ReasonRefused, "config changes the pods of %d Deployments, and a canary can have at most %d; try a part of it", exposed, maxWorkloads)
	case exposed == 0:
		return refuse(v1alpha1.ReasonRefused, "No Service selects the pods that config changes, so nothing could send them traffic; upgrade the release instead")
	}
	return nil
}

func checkWorkload(s *snapshot, w *Workload) *refusal {
	want, _ := s.transition()
	switch {
	case w.Rollout != "":
		return refuse(v1alpha1.ReasonConflict, "The Rollout %q releases the Deployment %q; delete one of the two", w.Rollout, w.Name)
	case w.Paused && !w.Held:
		return refuse(v1alpha1.ReasonConflict, "The Deployment %q is paused, and not by Serin; set its spec.paused to false", w.Name)
	case w.Replicas == 0 && want == v1alpha1.CanaryTransitionAdopted:
		return refuse(v1alpha1.ReasonRefused, "The Deployment %q is scaled to zero, so no pod of the canary could be handed over to it; scale it up", w.Name)
	}
	return nil
}

// exposed reports whether a Service selects pods of the candidate.
func (s *snapshot) exposed(w *Workload) bool {
	return slices.ContainsFunc(s.Services, func(svc Service) bool { return svc.Wanted && svc.Workload == w.Name })
}

func checkServices(s *snapshot) *refusal {
	for i := range s.Services {
		svc := &s.Services[i]
		switch {
		case !svc.Wanted:
		case svc.Problem != "":
			return refuse(v1alpha1.ReasonInvalidService, "%s", svc.Problem)
		case len(svc.Name) > maxName:
			return refuse(v1alpha1.ReasonInvalidService, "The name of the Service %q has more than %d characters, so Serin can't derive names from it; give it a shorter one", svc.Name, maxName)
		case svc.Taken != "":
			return refuse(v1alpha1.ReasonConflict, "%s; delete one of the two", svc.Taken)
		}
	}
	return nil
}

func checkSpec(s *snapshot) *refusal {
	for _, c := range s.CanaryRelease.Spec.Services {
		i := slices.IndexFunc(s.Services, func(svc Service) bool { return svc.Name == c.Service && svc.Wanted })
		if i < 0 {
			return refuse(v1alpha1.ReasonInvalidSpec, "spec.services: the Service %q selects no pods that config changes; remove it", c.Service)
		}
		if why := portProblem(c.Ports, &s.Services[i]); why != "" {
			return refuse(v1alpha1.ReasonInvalidSpec, "%s", why)
		}
	}
	return nil
}

func checkCopies(s *snapshot) *refusal {
	if len(s.Copies) > maxCopies {
		return refuse(v1alpha1.ReasonRefused, "The canary's pods would read copies of %d objects, and at most %d can be made; try a part of what config changes", len(s.Copies), maxCopies)
	}
	for _, c := range s.Copies {
		if c.Wanted && c.Presence == kit.Present && !c.Ours {
			return refuse(v1alpha1.ReasonConflict, "The %s %q does not belong to this CanaryRelease, which needs the name; delete or rename it", c.Kind, c.Name)
		}
	}
	return nil
}
