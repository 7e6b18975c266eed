// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Decide returns what to do about a Rollout, given what was observed.
func Decide(o Observation) Decision {
	d := newDraft(o)
	switch {
	case d.Unreadable != "":
		d.Say(v1alpha1.ReasonObservationFailed, "Waiting: %s. Nothing is changed meanwhile.", d.Unreadable)
	case d.deleting():
		converge(d)
	case d.refusal != nil:
		retreat(d)
	default:
		proceed(d)
	}
	return d.decision()
}

// proceed decides about a Rollout that can be served. Which version the workload's
// template is comes first; but in the middle of a release it comes last: what the
// traffic says never waits for it, and the template changes under the release as when
// a user changes it.
func proceed(d *draft) {
	if !d.begun() && (outdated(&d.snapshot) || contentsChanging(&d.snapshot)) {
		d.Wait(v1alpha1.ReasonConfigurationChanged, "Another content of a ConfigMap or Secret becomes part of the next version.")
	} else {
		converge(d)
	}
	configure(d)
	if !slices.Contains(d.Rollout.Finalizers, v1alpha1.Finalizer) {
		d.Actions = slices.Insert(d.Actions, 0, kit.Action(kit.AddFinalizer{}))
	}
}

// maxTransitions is more than one look ever makes.
const maxTransitions = 32

// converge acts for the phase that the Rollout is in. What ends a release, or makes
// another version stable, makes that another phase, which is acted for in the same look.
func converge(d *draft) {
	if d.newStable != nil {
		d.status.Stable = d.newStable
	}
	for range maxTransitions {
		d.Actions, d.State = nil, kit.Statement{}
		p, step := assess(&d.snapshot), act
		if p == phaseReleasing {
			step = release
		}
		if another := step(d, p); !another {
			return
		}
	}
}

// release does so within a release: what changes its record, as a user action or the end
// of a step, makes that another phase. It reports whether the release ended.
func release(d *draft, _ phase) (ended bool) {
	for range maxTransitions {
		d.Actions, d.State = nil, kit.Statement{}
		p := assessRelease(&d.snapshot)
		if another := act(d, p); !another || p == phasePromoting {
			return another
		}
	}
	return false
}

// phase is where a Rollout is.
type phase string

// The phases of a release, whatever is released. Those of one kind of target are in its
// file.
const (
	phaseReleasing  phase = "Releasing" // one of those below
	phaseRestoring  phase = "Restoring"
	phaseSuperseded phase = "Superseded"
	phaseRolledBack phase = "RolledBack"
	phaseNew        phase = "New"
	phaseEdited     phase = "Edited"
	phaseControlled phase = "Controlled"
	phaseUnjudged   phase = "Unjudged"
	phaseFailed     phase = "Failed"
	phaseUngoverned phase = "Ungoverned"
	phaseStaying    phase = "Staying"
	phaseWithdrawn  phase = "Withdrawn"
	phaseLowered    phase = "Lowered"
	phaseWaiting    phase = "Waiting"
	phaseTampered   phase = "Tampered"
	phasePromoting  phase = "Promoting"
	phaseStepping   phase = "Stepping"
)

// assess finds the phase outside of a release. It changes nothing.
func assess(s *snapshot) phase {
	if s.deleting() {
		return phaseRestoring
	}
	return targetOf(s.Rollout).assess(s)
}

// assessRelease finds the phase of a release, by the first row that holds. "Refused" is
// a Rollout that can't be served; its release goes on with nothing.
//
//	phase       | holds when                                       | then
//	------------+--------------------------------------------------+---------------------------------
//	Superseded  | the record is of another version                 | that release ends
//	RolledBack  | a rollback was decided                           | its traffic, then its pods go
//	of a target | the target is not ready for a release            | see the file of the target
//	Staying     | refused                                          | it stays, or is rolled back
//	New         | there is no record of the version                | it begins one
//	Edited      | the steps are not those of the record            | the step is found again
//	Controlled  | a user action can be applied                     | it is
//	Unjudged    | the traffic since the last look is not judged    | it is
//	Failed      | the analysis failed, or no pods answer           | a rollback is decided
//	Lowered     | all steps are higher than what the canary has    | no traffic, then the first step
//	Waiting     | it has not begun                                 | it begins when it may
//	of a target | traffic and pods are not under control           | see the file of the target
//	Tampered    | somebody else changed the canary's traffic       | it is set back
//	Promoting   | the promotion was decided                        | all traffic, then it is stable
//	Stepping    | otherwise                                        | pods, traffic, time and evidence
func assessRelease(s *snapshot) phase {
	if c := s.status.Canary; c != nil && c.Revision != s.revision {
		return phaseSuperseded
	}
	if s.rolledBack() {
		return phaseRolledBack
	}
	if p := targetOf(s.Rollout).hindrance(s); p != phaseReleasing {
		return p
	}
	if s.refusal != nil {
		return assessRefused(s)
	}
	return assessServed(s)
}

// assessServed finds the phase of a release that may go on.
func assessServed(s *snapshot) phase {
	switch {
	case s.status.Canary == nil:
		return phaseNew
	case edited(s):
		return phaseEdited
	case applicable(s):
		return phaseControlled
	case !s.judged:
		return phaseUnjudged
	case failed(s):
		return phaseFailed
	case s.status.Step == nil:
		return phaseLowered
	case !s.begun():
		return phaseWaiting
	}
	return assessTraffic(s)
}

// assessTraffic finds the phase of a release that has begun.
func assessTraffic(s *snapshot) phase {
	if p := targetOf(s.Rollout).unprepared(s); p != phaseReleasing {
		return p
	}
	switch {
	case tampered(s):
		return phaseTampered
	case s.decided(v1alpha1.ActionPromote):
		return phasePromoting
	default:
		return phaseStepping
	}
}

// assessRefused finds the phase of a release that can't go on.
func assessRefused(s *snapshot) phase {
	switch {
	case applicable(s):
		return phaseControlled
	case !s.judged:
		return phaseUnjudged
	case failed(s):
		return phaseFailed
	case s.begun() && s.ungoverned:
		return phaseUngoverned
	case s.begun():
		return phaseStaying
	default:
		return phaseWithdrawn
	}
}

// act acts for a phase, and reports whether that made another one of it.
func act(d *draft, p phase) (another bool) {
	switch p {
	case phaseSuperseded:
		supersede(d)
	case phaseNew:
		enter(d)
	case phaseEdited:
		relocate(d)
	case phaseControlled:
		applyControl(d)
	case phaseUnjudged:
		judgeTraffic(d)
	case phaseFailed:
		why := failure(&d.snapshot)
		reject(d, why.reason, why.message)
	case phaseUngoverned:
		reject(d, v1alpha1.ReasonRouterUnavailable, "no router serves its TrafficSplit any more, so its weights have no effect")
	default:
		return actOnTraffic(d, p)
	}
	return true
}

// actOnTraffic acts for the phases that move traffic or wait.
func actOnTraffic(d *draft, p phase) (another bool) {
	switch p {
	case phaseRestoring:
		if finalized(d) {
			return false
		}
		return targetOf(d.Rollout).act(d, p)
	case phaseStaying:
		stay(d)
	case phaseLowered:
		return startAgain(d)
	case phaseWaiting:
		return begin(d)
	case phaseTampered:
		return restoreRoute(d)
	case phasePromoting:
		return promote(d)
	case phaseStepping:
		return takeStep(d)
	default:
		return targetOf(d.Rollout).act(d, p)
	}
	return false
}
