// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Decision is what to do now.
type Decision struct {
	// Status is the status to write before any action. Where it equals the observed one,
	// nothing is written.
	Status v1alpha1.CanaryReleaseStatus
	// Actions in order; the first error stops the rest.
	Actions []kit.Action
	// Events tell users of transitions, after the status was written.
	Events []kit.Event
	// After is when to look again if nothing changes; 0 means only on a change.
	After time.Duration
}

// draft is a Decision in the making. Decide makes it, and it never leaves it.
type draft struct {
	snapshot
	kit.Draft
}

// Decide returns what to do about a CanaryRelease, given what was observed.
func Decide(o Observation) Decision {
	d := &draft{snapshot: snapshot{Observation: o, status: *o.CanaryRelease.Status.DeepCopy()}}
	if d.Unreadable != "" {
		d.Say(v1alpha1.ReasonObservationFailed, "Waiting: %s. Nothing is changed meanwhile.", d.Unreadable)
		return decision(d)
	}
	// What only changes the record makes another phase, which is acted for in the same look.
	for range maxTransitions {
		if another := act(d, assess(&d.snapshot)); !another {
			break
		}
	}
	return decision(d)
}

// maxTransitions is more than one look ever makes.
const maxTransitions = 8

// phase is where a CanaryRelease is.
type phase string

const (
	phaseEnded       phase = "Ended"
	phaseConcluding  phase = "Concluding"
	phaseDeprecating phase = "Deprecating"
	phaseDeployed    phase = "Deployed"
	phaseReplacing   phase = "Replacing"
	phaseUpgrading   phase = "Upgrading"
	phaseUnknown     phase = "Unknown"
	phaseRefused     phase = "Refused"
	phaseUnsettled   phase = "Unsettled"
	phaseAdopting    phase = "Adopting"
	phaseServing     phase = "Serving"
)

// assess finds the phase, by the first row that holds. It changes nothing.
//
//	phase       | holds when                                          | then
//	------------+-----------------------------------------------------+-----------------------------------------
//	Ended       | nothing is left to do                               | the finalizer goes
//	Concluding  | how it ends is certain, and not on record           | it is put on record
//	Deprecating | it is to be deprecated                              | traffic, pods and all else go
//	Replacing   | that Helm has deployed it is on record              | the Deployments get the pods; all else goes
//	Deployed    | it is to be adopted, and Helm has deployed it       | that is put on record
//	Upgrading   | it is to be adopted, and Helm was called            | Helm is called again, while all is held
//	Unknown     | Helm can't say what the release is, or would be     | nothing is changed
//	Refused     | no canary can be made                               | all that was made goes
//	Unsettled   | nothing was made, and a Deployment is at work       | it waits
//	Adopting    | it is to be adopted                                 | all traffic and pods, and then Helm
//	Serving     | otherwise                                           | the weights of the spec
func assess(s *snapshot) phase {
	switch {
	case s.ended():
		return phaseEnded
	case conclusion(s) != nil:
		return phaseConcluding
	case s.decided(v1alpha1.CanaryTransitionDeprecated):
		return phaseDeprecating
	case s.decided(v1alpha1.CanaryTransitionAdopted) && s.adoptedRevision() > 0:
		return phaseReplacing
	case s.decided(v1alpha1.CanaryTransitionAdopted) && s.upgraded():
		return phaseDeployed
	case s.decided(v1alpha1.CanaryTransitionAdopted) && s.Release.Ours:
		return phaseUpgrading
	}
	return assessCanary(s)
}

// assessCanary finds the phase while Helm was not called.
func assessCanary(s *snapshot) phase {
	_, doubtful := doubt(s)
	switch {
	case doubtful:
		return phaseUnknown
	case refused(s) != nil:
		return phaseRefused
	case unsettled(s) != nil:
		return phaseUnsettled
	case s.decided(v1alpha1.CanaryTransitionAdopted):
		return phaseAdopting
	}
	return phaseServing
}

// act acts for a phase, and reports whether that made another one of it.
func act(d *draft, p phase) (another bool) {
	switch p {
	case phaseEnded:
		rest(d)
	case phaseConcluding:
		conclude(d)
		return true
	case phaseDeprecating:
		return deprecate(d)
	case phaseReplacing:
		return replaceAll(d)
	case phaseDeployed:
		d.status.Release = &v1alpha1.CanaryHelmRelease{Revision: d.CanaryRelease.Spec.Version, AdoptedRevision: d.Release.Newest}
		return true
	case phaseUpgrading:
		holdAndUpgrade(d)
	case phaseAdopting:
		adopt(d)
	case phaseServing:
		live(d)
	default:
		obstructed(d, p)
		adopting(d)
	}
	return false
}

// obstructed acts for the phases in which a canary can't be made, or not yet.
func obstructed(d *draft, p phase) {
	switch p {
	case phaseUnknown:
		why, _ := doubt(&d.snapshot)
		d.Wait(v1alpha1.ReasonObservationFailed, "Waiting: %s. Nothing is changed meanwhile.", why)
	case phaseRefused:
		retreat(d, refused(&d.snapshot))
	case phaseUnsettled:
		guard(d)
		if !restoreAll(d) { // held for an adoption whose record was lost
			return
		}
		d.Wait(v1alpha1.ReasonDeploying, "Waiting until the Deployment %s has all the pods that the release declares.", unsettled(&d.snapshot).Name)
	}
}
