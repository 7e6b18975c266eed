// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// gate reports whether step i may begin: the one after the last step is the
// promotion. What is in the way is said.
func (p *pass) gate(i int, since time.Time) bool {
	if !p.mayGrow() || !p.timeHasCome(i, since) {
		return false
	}
	if i == 0 && !p.approved(v1alpha1.HookBeforeRelease, i) {
		return false
	}
	return i >= len(p.steps) || p.approved(v1alpha1.HookBeforeStep, i)
}

// mayGrow reports whether the canary may get more traffic at all now. Nothing here
// is ever asked before traffic is taken away.
func (p *pass) mayGrow() bool {
	if p.returning() {
		return true
	}
	if p.Rollout.Spec.Paused {
		p.wait(v1alpha1.ReasonPaused, "no further steps, since spec.paused is true")
		return false
	}
	if p.failing() && !p.accepted() {
		return p.standStill()
	}
	return p.windowOpen()
}

// windowOpen reports whether windows and freezes let the traffic grow.
func (p *pass) windowOpen() bool {
	now := p.calendar.At(p.Now)
	finish := p.begun() && p.Rollout.Spec.Schedule != nil && p.Rollout.Spec.Schedule.WhenClosed == v1alpha1.ClosedFinish
	if now.Open || finish && !now.Frozen {
		if !now.Until.IsZero() && !finish {
			p.wake(now.Until) // it may close while pods start
		}
		return true
	}
	p.wait(v1alpha1.ReasonWaitingForSchedule, "waiting, "+now.Reason)
	p.goesOn(now.Opens)
	if !now.Until.IsZero() {
		p.wake(now.Until)
	}
	return false
}

// timeHasCome reports whether the time that a step names has come, counted from
// the end of the step before.
func (p *pass) timeHasCome(i int, since time.Time) bool {
	if i >= len(p.steps) || p.steps[i].at == "" {
		return true
	}
	// A step that ends at the very time that the next one names does not wait for the
	// time after.
	at, found, err := p.calendar.Next(p.steps[i].at, since.Add(-time.Nanosecond))
	switch {
	case err != nil || !found:
		p.wait(v1alpha1.ReasonWaitingForSchedule, fmt.Sprintf("waiting, since the time %q of the next step never comes", p.steps[i].at))
		return false
	case p.Now.Before(at):
		p.wait(v1alpha1.ReasonWaitingForSchedule, "the next step begins at "+dateTime(at))
		p.goesOn(at)
		return false
	}
	return true
}

// begun reports whether the release has done anything yet.
func (p *pass) begun() bool { return p.status.Canary != nil && p.status.Canary.StartedAt != nil }

// wait says what the release waits for, and where it stands meanwhile.
func (p *pass) wait(reason v1alpha1.Reason, what string) {
	p.state.progress = true
	switch {
	case !p.begun():
		p.say(reason, "Revision %s is not released yet: %s.", p.revision, what)
	case p.status.Step != nil && p.status.Step.ProgrammedAt == nil:
		p.say(reason, "Step %s: %s. It begins when that is over.", p.status.Step.Summary, what)
	default:
		p.say(reason, "%s; %s. %s", p.where(), what, p.evidenceSentence(p.verdict))
	}
}

// where says how far the release is.
func (p *pass) where() string {
	s := p.status.Step
	here := Route{Weight: s.Weight, Matches: s.Matches}
	if s.ProgrammedAt == nil {
		here = p.lastAsked()
	}
	return fmt.Sprintf("Step %s: %s goes to the canary", s.Summary, p.reached(here))
}

// failing reports whether the analysis failed and it is left to a person what to do.
func (p *pass) failing() bool { return p.pauseOnFailure && p.failed }

// accepted reports whether a person wants to go on although the analysis failed. A
// promotion after the last step is no such wish: what comes up while it waits counts.
func (p *pass) accepted() bool {
	if p.decided(v1alpha1.ActionPromote) && p.status.Decision.Reason != reasonPassed {
		return true
	}
	s := p.status.Step
	return s != nil && (s.FailureAccepted && s.ProgrammedAt == nil || s.AnalysisSkipped)
}

// standStill says that a person has to decide.
func (p *pass) standStill() bool {
	p.say(v1alpha1.ReasonAnalysisFailed, "%s, and the analysis failed: %s. Set spec.control to Abort, Skip or PromoteFull, since spec.strategy.onFailure is Pause.", p.where(), p.verdict.Explain())
	p.state.progress, p.state.stalled = true, true
	p.tellOnce(v1alpha1.NotifyWaiting, p.state.message)
	return false
}
