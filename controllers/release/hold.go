// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// startHold notes that the weight of the step is in effect.
func (p *pass) startHold(s step) {
	at := p.micro()
	p.status.Step.ProgrammedAt = &at
	if !p.byReplicas {
		p.verdict = p.startEvidence()
	}
	what := fmt.Sprintf("Step %s: %s goes to the canary", p.status.Step.Summary, p.reached(s.Route))
	p.events = append(p.events, Event{Routine: true, Reason: "WeightInEffect", Message: what})
	p.tell(v1alpha1.NotifyStepInEffect, what+".")
}

// reached is what the canary really gets. Where nothing is in the path, that is
// the share of its pods.
func (p *pass) reached(r Route) string {
	if !p.byReplicas || p.canary == nil {
		return r.share()
	}
	stable := int32(0)
	if s := p.stable(); s != nil {
		stable = s.Available
	}
	got := share(p.canary.Available, stable)
	text := fmt.Sprintf("%d %% of the traffic (%d of %d pods)", got, p.canary.Available, p.canary.Available+stable)
	if got != r.Weight {
		text += fmt.Sprintf(" instead of %d %%", r.Weight)
	}
	return text
}

// hold waits for time, approval and evidence, and moves on when there is enough
// of all of them.
func (p *pass) hold(i int) {
	s := p.steps[i]
	now := p.status.Step
	if now.ProgrammedAt == nil {
		p.startHold(s)
	}
	end := p.endOf(i)
	switch {
	case now.AnalysisSkipped:
		p.goOn(i, "a person skipped the rest of a step")
	case p.failing():
		p.standStill()
	case now.PassedAt == nil && p.Now.Before(end):
		p.holdOn(i, end)
	case s.manual && now.PassedAt == nil && !p.gateApproved(i):
	case p.passes(s):
		p.goOn(i, "every step passed")
	default:
		p.inconclusive(i)
	}
}

// holdOn waits for the end of the hold, unless the evidence brings it forward.
func (p *pass) holdOn(i int, end time.Time) {
	if p.promotesEarly(i) {
		return
	}
	until := "until %s at least"
	if p.status.Step.HoldoutUntil != nil {
		until = "ahead of time, since it has proved itself; stable keeps the rest until %s, and both are compared"
	}
	p.say(v1alpha1.ReasonHolding, "%s "+until+". %s", p.where(), endTime(end, p.steps[i].hold), p.evidenceSentence(p.verdict))
	p.goesOn(end)
}

// passes reports whether the evidence is good enough for the step to end.
func (p *pass) passes(s step) bool {
	return s.Weight == 0 && len(s.judge.Limits) == 0 || p.byReplicas || p.verdict.Verdict == judge.Pass
}

// gateApproved asks the hooks of a manual gate, and says that it waits.
func (p *pass) gateApproved(i int) bool {
	if slices.ContainsFunc(p.Rollout.Spec.Hooks, func(h v1alpha1.Hook) bool { return h.When == v1alpha1.HookGate }) {
		ok := p.approved(v1alpha1.HookGate, i)
		if ok {
			p.status.Step.PassedAt = new(p.micro())
		}
		return ok
	}
	p.say(v1alpha1.ReasonWaitingForApproval, "%s, and the step waits for a person: set spec.control to Promote, Skip, PromoteFull or Abort for revision %s. %s", p.where(), p.revision, p.evidenceSentence(p.verdict))
	p.tellOnce(v1alpha1.NotifyWaiting, p.state.message)
	return false
}

// inconclusive does what the spec says about a step that is over in time but not
// in evidence.
func (p *pass) inconclusive(i int) {
	onInconclusive := p.steps[i].onInconclusive
	end := p.status.Step.ProgrammedAt.Add(max(p.steps[i].hold, policy.MinObservation))
	switch {
	case onInconclusive == v1alpha1.InconclusiveHold || p.Now.Before(end):
		p.say(v1alpha1.ReasonWaitingForEvidence, "%s and the step goes on until there is evidence. %s", p.where(), p.evidenceSentence(p.verdict))
		if onInconclusive != v1alpha1.InconclusiveHold {
			p.wake(end)
		}
	case onInconclusive == v1alpha1.InconclusivePromote:
		p.goOn(i, "the evidence was inconclusive and spec.analysis.onInconclusive is Promote")
	default:
		p.reject(string(p.verdict.Reason), "the evidence was inconclusive and spec.analysis.onInconclusive is RollBack: "+p.verdict.Explain())
	}
}

// goOn enters the next step as soon as nothing is in its way, or decides to promote
// after the last one.
func (p *pass) goOn(i int, why string) {
	if !p.gate(i+1, p.overSince(i)) {
		return
	}
	insisted := p.status.Step.AnalysisSkipped && (p.failing() || p.verdict.Reason == judge.ReasonSuspected)
	p.enterStep(i + 1)
	p.status.Step.FailureAccepted = insisted
	if i+1 == len(p.steps) {
		p.decidePromotion(reasonPassed, why)
	}
	p.proceed()
}

// overSince is when step i could have ended first.
func (p *pass) overSince(i int) time.Time {
	s := p.status.Step
	if s.PassedAt != nil {
		return s.PassedAt.Time
	}
	return p.endOf(i)
}
