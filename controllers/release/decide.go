// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/deployment"
	"github.com/serin-dev/serin/controllers/release/evidence"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
)

// Decide returns what to do about a Rollout, given what was observed.
func Decide(o state.Observation) state.Decision {
	d := newDraft(o)
	switch {
	case d.Unreadable != "":
		d.Say(v1alpha1.ReasonObservationFailed, "Waiting: %s. Nothing is changed meanwhile.", d.Unreadable)
	case d.Deleting():
		converge(d)
	case d.Refusal != nil:
		retreat(d)
	default:
		proceed(d)
	}
	if d.Unreadable == "" {
		deployment.KeepPreviews(d)
	}
	return conclude(d)
}

// proceed decides about a Rollout that can be served. Which version the workload's
// template is comes first; but in the middle of a release it comes last: what the
// traffic says never waits for it, and the template changes under the release as when
// a user changes it.
func proceed(d *state.Draft) {
	if !d.Begun() && (outdated(&d.Snapshot) || contentsChanging(&d.Snapshot)) {
		d.Wait(v1alpha1.ReasonConfigurationChanged, "New content of a ConfigMap or Secret becomes part of the next version.")
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
func converge(d *state.Draft) {
	if d.Status.Stable == nil && !d.Deleting() {
		record.IgnoreControl(d) // it is about an earlier release, as in a backup that is restored
	}
	if d.NewStable != nil {
		d.Status.Stable = d.NewStable
	}
	for range maxTransitions {
		d.Actions, d.State = nil, kit.Statement{}
		p, step := assess(&d.Snapshot), act
		if p == state.PhaseReleasing {
			step = release
		}
		if another := step(d, p); !another {
			return
		}
	}
}

// release does so within a release: what changes its record, as a user action or the end
// of a step, makes that another phase. It reports whether the release ended.
func release(d *state.Draft, _ state.Phase) (ended bool) {
	for range maxTransitions {
		d.Actions, d.State = nil, kit.Statement{}
		p := assessRelease(&d.Snapshot)
		if another := act(d, p); !another || p == state.PhasePromoting {
			return another
		}
	}
	return false
}

// assess finds the phase outside of a release. It changes nothing.
func assess(s *state.Snapshot) state.Phase {
	if s.Deleting() {
		return state.PhaseRestoring
	}
	return targetOf(s.Rollout).Assess(s)
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
//	Tampered    | another actor changed the canary's traffic       | it is set back
//	Promoting   | the promotion was decided                        | all traffic, then it is stable
//	Stepping    | otherwise                                        | pods, traffic, time and evidence
func assessRelease(s *state.Snapshot) state.Phase {
	if c := s.Status.Canary; c != nil && c.Revision != s.Revision {
		return state.PhaseSuperseded
	}
	if s.RolledBack() {
		return state.PhaseRolledBack
	}
	if p := targetOf(s.Rollout).Hindrance(s); p != state.PhaseReleasing {
		return p
	}
	if s.Refusal != nil {
		return assessRefused(s)
	}
	return assessServed(s)
}

// assessServed finds the phase of a release that may go on.
func assessServed(s *state.Snapshot) state.Phase {
	switch {
	case s.Status.Canary == nil:
		return state.PhaseNew
	case edited(s):
		return state.PhaseEdited
	case record.Applicable(s):
		return state.PhaseControlled
	case !s.Judged:
		return state.PhaseUnjudged
	case evidence.Failed(s):
		return state.PhaseFailed
	case s.Status.Step == nil:
		return state.PhaseLowered
	case !s.Begun():
		return state.PhaseWaiting
	}
	return assessTraffic(s)
}

// assessTraffic finds the phase of a release that has begun.
func assessTraffic(s *state.Snapshot) state.Phase {
	if p := targetOf(s.Rollout).Unprepared(s); p != state.PhaseReleasing {
		return p
	}
	switch {
	case routing.Tampered(s):
		return state.PhaseTampered
	case s.Decided(v1alpha1.ActionPromote):
		return state.PhasePromoting
	default:
		return state.PhaseStepping
	}
}

// assessRefused finds the phase of a release that can't go on.
func assessRefused(s *state.Snapshot) state.Phase {
	switch {
	case record.Applicable(s):
		return state.PhaseControlled
	case !s.Judged:
		return state.PhaseUnjudged
	case evidence.Failed(s):
		return state.PhaseFailed
	case s.Begun() && s.Ungoverned:
		return state.PhaseUngoverned
	case s.Begun():
		return state.PhaseStaying
	default:
		return state.PhaseWithdrawn
	}
}

// act acts for a phase, and reports whether that made another one of it.
func act(d *state.Draft, p state.Phase) (another bool) {
	switch p {
	case state.PhaseSuperseded:
		record.Supersede(d)
	case state.PhaseNew:
		enter(d)
	case state.PhaseEdited:
		relocate(d)
	case state.PhaseControlled:
		record.ApplyControl(d)
	case state.PhaseUnjudged:
		evidence.JudgeTraffic(d)
	case state.PhaseFailed:
		why := evidence.Failure(&d.Snapshot)
		record.Reject(d, why.Reason, why.Message)
	case state.PhaseUngoverned:
		record.Reject(d, v1alpha1.ReasonRouterUnavailable, "no router serves its TrafficSplit now, so its weights have no effect")
	default:
		return actOnTraffic(d, p)
	}
	return true
}

// actOnTraffic acts for the phases that move traffic or wait.
func actOnTraffic(d *state.Draft, p state.Phase) (another bool) {
	switch p {
	case state.PhaseRestoring:
		if finalized(d) {
			return false
		}
		return targetOf(d.Rollout).Act(d, p)
	case state.PhaseStaying:
		stay(d)
	case state.PhaseLowered:
		return startAgain(d)
	case state.PhaseWaiting:
		return begin(d)
	case state.PhaseTampered:
		return routing.RestoreRoute(d)
	case state.PhasePromoting:
		return promote(d)
	case state.PhaseStepping:
		return takeStep(d)
	default:
		return targetOf(d.Rollout).Act(d, p)
	}
	return false
}
