// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/serin-dev/serin/analysis/judge"
)

// Action is what happens next to a release.
type Action string

const (
	// Hold leaves the weight as it is.
	Hold Action = "Hold"
	// Step ends the present step: the next one begins.
	Step Action = "Step"
	// Promote gives the canary all traffic; before the planned end, all but
	// Holdout, so that a defect that shows late is still found.
	Promote Action = "Promote"
	// RollBack takes all traffic from the canary.
	RollBack Action = "RollBack"
)

// Holdout is the share of requests, in percent, that stable keeps after an
// early promotion until the planned end.
const Holdout = 5

// Inconclusive is what happens when a step has been held long enough and the evidence
// is inconclusive.
type Inconclusive string

const (
	// WaitForEvidence holds the step until there is evidence.
	WaitForEvidence Inconclusive = "Hold"
	// GoOn takes the next step without evidence.
	GoOn Inconclusive = "Promote"
	// GiveUp rolls back without evidence.
	GiveUp Inconclusive = "RollBack"
)

// MinObservation is how long traffic is watched before an Inconclusive
// step may go on or be given up: the start-up phase and three windows.
const MinObservation = 30 * time.Second

// Stage is one step of a release.
type Stage struct {
	// Weight is the canary's share of the requests, in percent.
	Weight int32
	// Hold is how long the step lasts at least.
	Hold time.Duration
	// Judge says what is to be proved in this step, and how surely.
	Judge judge.Config
	// OnInconclusive is what happens without enough evidence; "" is
	// WaitForEvidence.
	OnInconclusive Inconclusive
	// Early is whether the evidence that the canary is no worse promotes it before
	// the step has been held, if it is the last step.
	Early bool
	// Untested is whether the step sends nothing to the canary by plan, so that
	// there is nothing to judge.
	Untested bool
}

// Progress is how far a release has come when a verdict arrives.
type Progress struct {
	// Held is how long the present step has lasted.
	Held time.Duration
	// Last is whether it is the last step.
	Last bool
	// Ended is whether the step is over ahead of its hold: by a user, or by the end
	// that was planned before an early promotion.
	Ended bool
	// Holdout is whether the canary was promoted early, so that only the holdout is
	// left, and Promoted whether nothing is left.
	Holdout, Promoted bool
}

// React decides what a verdict means in a step. A Fail rolls back at once, also
// after an early promotion; everything else waits for the hold of the step,
// except an early promotion, for which the evidence of the last step is enough.
func (s Stage) React(p Progress, r judge.Result) Action {
	switch {
	case r.Verdict == judge.Fail:
		return RollBack
	case p.Promoted:
		return Hold
	case p.Last && s.Early && r.MayPromote && !p.Holdout:
		return Promote
	case p.Held < s.Hold && !p.Ended:
		return Hold
	case s.Passes(r):
		return p.next()
	default:
		return s.withoutEvidence(p, r)
	}
}

// Passes reports whether the evidence is good enough for the step to end.
// Nothing is tested of a canary that gets no traffic, but the proxies have all of it, and are not
// known to be well again while they are not measured.
func (s Stage) Passes(r judge.Result) bool {
	return r.Verdict == judge.Pass || s.Untested && !r.Refusals.Holds()
}

// withoutEvidence does what the policy says.
func (s Stage) withoutEvidence(p Progress, r judge.Result) Action {
	switch {
	case p.Held < max(s.Hold, MinObservation), r.Reason == judge.ReasonShareMismatch, r.Reason == judge.ReasonRefusedByProxies:
		return Hold // what is no version's doing says nothing of the canary, and more traffic does not help
	case s.OnInconclusive == GoOn && !r.Refusals.Holds():
		return p.next()
	case s.OnInconclusive == GiveUp:
		return RollBack
	default:
		return Hold
	}
}

func (p Progress) next() Action {
	if p.Last {
		return Promote
	}
	return Step
}
