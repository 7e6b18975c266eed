// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// hold waits for time, approval and evidence, and moves on when there is enough of all
// of them. What a verdict means is the policy's; users, approvals and gates come here.
func hold(d *draft, i int) (another bool) {
	s, now := d.stepAt(i), d.status.Step
	if now.ProgrammedAt == nil {
		startHold(d, s)
	}
	end := d.endOf(i)
	held := now.PassedAt == nil && d.Now.Before(end)
	stage := stageOf(&d.snapshot, i)
	action := stage.React(progressOf(&d.snapshot, i), d.verdict)
	switch {
	case now.AnalysisSkipped:
		return next(d, i, "a user skipped the rest of a step")
	case d.paused():
		d.wait(failureObstacle(&d.snapshot))
		return false
	case held && action != policy.RollBack:
		return holdOn(d, i, end, action)
	case s.manual && now.PassedAt == nil && action != policy.RollBack:
		if approved, ended := askApproval(d, i); !approved {
			return ended
		}
	}
	return react(d, i, stage, action)
}

// stageOf is a step as the policy knows it.
func stageOf(s *snapshot, i int) policy.Stage {
	step := s.stepAt(i)
	return policy.Stage{
		Weight: step.Weight, Hold: step.hold, Judge: step.judge, OnInconclusive: policy.Inconclusive(step.onInconclusive), Early: s.early,
		Untested: s.byReplicas || step.Weight == 0 && len(step.judge.Limits) == 0,
	}
}

// progressOf is how far the present step, which is in effect, has come.
func progressOf(s *snapshot, i int) policy.Progress {
	now := s.status.Step
	holdout := now.HoldoutUntil != nil
	return policy.Progress{
		Held: s.Now.Sub(now.ProgrammedAt.Time), Last: i == len(s.steps)-1, Holdout: holdout,
		Ended: now.PassedAt != nil || holdout && !s.Now.Before(now.HoldoutUntil.Time),
	}
}

// react does what the policy says about a step that is over in time.
func react(d *draft, i int, stage policy.Stage, action policy.Action) (another bool) {
	switch {
	case action == policy.RollBack && d.verdict.Verdict == judge.Fail:
		reject(d, string(d.verdict.Reason), d.verdict.Explain())
		return true
	case action == policy.RollBack:
		reject(d, string(d.verdict.Reason), "the evidence was inconclusive and spec.analysis.onInconclusive is RollBack: "+d.verdict.Explain())
		return true
	case action == policy.Hold:
		d.Say(v1alpha1.ReasonWaitingForEvidence, "%s and the step goes on until there is evidence. %s", where(&d.snapshot), evidenceSentence(&d.snapshot))
		if stage.OnInconclusive != policy.WaitForEvidence {
			d.wake(d.status.Step.ProgrammedAt.Add(max(stage.Hold, policy.MinObservation)))
		}
		return false
	case stage.Passes(d.verdict):
		return next(d, i, "every step passed")
	}
	return next(d, i, "the evidence was inconclusive and spec.analysis.onInconclusive is Promote")
}

// startHold notes that the weight of the step is in effect.
func startHold(d *draft, s step) {
	d.status.Step.ProgrammedAt = new(d.micro())
	if !d.byReplicas {
		startEvidence(d)
	}
	what := fmt.Sprintf("Step %s: %s goes to the canary", d.status.Step.Summary, reached(&d.snapshot, s.Route))
	d.Events = append(d.Events, kit.Event{Routine: true, Reason: "WeightInEffect", Message: what})
	notify(d, v1alpha1.NotifyStepProgrammed, what+".")
}

// holdOn waits for the end of the hold, unless the evidence brings it forward.
func holdOn(d *draft, i int, end time.Time, action policy.Action) (another bool) {
	if action == policy.Promote {
		opened, ended := open(d, len(d.steps), d.Now)
		if ended {
			return true
		}
		if opened {
			promoteEarly(d, i)
			return true
		}
	}
	until := "until %s at least"
	if d.status.Step.HoldoutUntil != nil {
		until = "ahead of time, since the evidence suffices; stable keeps the rest until %s, and both are compared"
	}
	d.Say(v1alpha1.ReasonHolding, "%s "+until+". %s", where(&d.snapshot), endTime(end, d.steps[i].hold), evidenceSentence(&d.snapshot))
	d.goesOn(end)
	return false
}

// promoteEarly gives a canary that has proved itself nearly all of the traffic.
func promoteEarly(d *draft, i int) {
	end := metav1.NewMicroTime(d.endOf(i))
	d.enterStep(i)
	s := d.status.Step
	s.HoldoutUntil, s.HoldoutFrom, s.Weight = &end, s.Weight, holdoutWeight
	d.Events = append(d.Events, kit.Event{Routine: true, Reason: "PromotedEarly", Message: fmt.Sprintf(
		"The evidence for revision %s suffices ahead of time: %s", d.revision, d.verdict.Explain())})
}

// askApproval asks the hooks of a manual gate, or says that it waits for a user.
func askApproval(d *draft, i int) (approved, ended bool) {
	if slices.ContainsFunc(d.Rollout.Spec.Hooks, func(h v1alpha1.Hook) bool { return h.When == v1alpha1.HookGate }) {
		approved, ended = askHooks(d, v1alpha1.HookGate, i)
		if approved {
			d.status.Step.PassedAt = new(d.micro())
		}
		return approved, ended
	}
	d.Say(v1alpha1.ReasonWaitingForApproval, "%s, and the step waits for approval: set spec.control to Promote, Skip, PromoteFull or Abort for revision %s. %s", where(&d.snapshot), d.revision, evidenceSentence(&d.snapshot))
	notifyOnce(d, v1alpha1.NotifyWaiting, d.State.Message)
	return false, false
}

// next enters the next step as soon as nothing is in its way, or decides to promote
// after the last one.
func next(d *draft, i int, why string) (another bool) {
	if opened, ended := open(d, i+1, overSince(&d.snapshot, i)); !opened {
		return ended
	}
	insisted := d.status.Step.AnalysisSkipped && (d.paused() || d.verdict.Reason == judge.ReasonSuspected)
	d.enterStep(i + 1)
	d.status.Step.FailureAccepted = insisted
	if i+1 == len(d.steps) {
		decidePromotion(d, reasonPassed, why)
	}
	return true
}

// overSince is when step i could have ended first.
func overSince(s *snapshot, i int) time.Time {
	if step := s.status.Step; step.PassedAt != nil {
		return step.PassedAt.Time
	}
	return s.endOf(i)
}
