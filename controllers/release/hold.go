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
	"github.com/serin-dev/serin/controllers/release/evidence"
	"github.com/serin-dev/serin/controllers/release/gates"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// hold waits for time, approval and evidence, and moves on when there is enough of all
// of them. What a verdict means is the policy's; users, approvals and gates come here.
func hold(d *state.Draft, i int) (another bool) {
	s, now := d.StepAt(i), d.Status.Step
	if now.ProgrammedAt == nil {
		startHold(d, s)
	}
	end := d.EndOf(i)
	held := now.PassedAt == nil && d.Now.Before(end)
	stage := evidence.StageOf(&d.Snapshot, i)
	action := stage.React(evidence.ProgressOf(&d.Snapshot, i), d.Verdict)
	switch {
	case now.AnalysisSkipped:
		return next(d, i, "a user skipped the rest of a step")
	case d.Paused():
		gates.WaitFor(d, gates.FailureObstacle(&d.Snapshot))
		return false
	case held && action != policy.RollBack:
		return holdOn(d, i, end, action)
	case s.Manual && now.PassedAt == nil && action != policy.RollBack:
		if approved, ended := awaitApproval(d, i); !approved {
			return ended
		}
	}
	return react(d, i, stage, action)
}

// react does what the policy says about a step that is over in time.
func react(d *state.Draft, i int, stage policy.Stage, action policy.Action) (another bool) {
	switch {
	case action == policy.RollBack && d.Verdict.Verdict == judge.Fail:
		record.Reject(d, string(d.Verdict.Reason), d.Verdict.Explain())
		return true
	case action == policy.RollBack:
		record.Reject(d, string(d.Verdict.Reason), "the evidence was inconclusive and spec.analysis.onInconclusive is RollBack: "+d.Verdict.Explain())
		return true
	case action == policy.Hold:
		d.Say(v1alpha1.ReasonWaitingForEvidence, "%s and the step goes on until there is evidence. %s", gates.Where(&d.Snapshot), evidence.Sentence(&d.Snapshot))
		if end := d.Status.Step.ProgrammedAt.Add(max(stage.Hold, policy.MinObservation)); stage.OnInconclusive != policy.WaitForEvidence && d.Now.Before(end) {
			d.GoesOn(end)
		}
		return false
	case stage.Passes(d.Verdict):
		return next(d, i, "every step passed")
	}
	return next(d, i, "the evidence was inconclusive and spec.analysis.onInconclusive is Promote")
}

// startHold notes that the weight of the step is live.
func startHold(d *state.Draft, s strategy.Step) {
	d.Status.Step.ProgrammedAt = new(d.Micro())
	if !d.Unmeasured {
		evidence.StartEvidence(d)
	}
	what := fmt.Sprintf("Step %s: %s goes to the canary", d.Status.Step.Summary, gates.Reached(&d.Snapshot, s.Route))
	d.Events = append(d.Events, kit.Event{Routine: true, Reason: "WeightLive", Message: what})
	record.Notify(d, v1alpha1.NotifyStepProgrammed, what+".")
}

// holdOn waits for the end of the hold, unless the evidence brings it forward.
func holdOn(d *state.Draft, i int, end time.Time, action policy.Action) (another bool) {
	if action == policy.Promote {
		opened, ended := gates.Open(d, len(d.Steps), d.Now)
		if ended {
			return true
		}
		if opened {
			promoteEarly(d, i)
			return true
		}
	}
	until := "until %s or later"
	if d.Status.Step.HoldoutUntil != nil {
		until = "ahead of time, since the evidence suffices; stable keeps the rest until %s, and both are compared"
	}
	d.Say(v1alpha1.ReasonHolding, "%s "+until+". %s", gates.Where(&d.Snapshot), state.EndTime(end, d.Steps[i].Hold), evidence.Sentence(&d.Snapshot))
	d.GoesOn(end)
	return false
}

// promoteEarly gives a canary that has proved itself nearly all of the traffic.
func promoteEarly(d *state.Draft, i int) {
	end := metav1.NewMicroTime(d.EndOf(i))
	d.EnterStep(i)
	s := d.Status.Step
	s.HoldoutUntil, s.HoldoutFrom, s.Weight = &end, s.Weight, strategy.HoldoutWeight
	d.Events = append(d.Events, kit.Event{Routine: true, Reason: "PromotedEarly", Message: fmt.Sprintf(
		"The evidence for revision %s suffices ahead of time: %s", d.Revision, d.Verdict.Explain())})
}

// awaitApproval calls the hooks of a manual step, or says that it waits for a user.
func awaitApproval(d *state.Draft, i int) (approved, ended bool) {
	if slices.ContainsFunc(d.Rollout.Spec.Hooks, func(h v1alpha1.Hook) bool { return h.When == v1alpha1.HookGate }) {
		approved, ended = gates.CallHooks(d, v1alpha1.HookGate, i)
		if approved {
			d.Status.Step.PassedAt = new(d.Micro())
		}
		return approved, ended
	}
	d.Say(v1alpha1.ReasonWaitingForApproval, "%s, and the step waits for approval: set spec.control to Promote, Skip, PromoteFull or Abort for revision %s. %s", gates.Where(&d.Snapshot), d.Revision, evidence.Sentence(&d.Snapshot))
	record.NotifyOnce(d, v1alpha1.NotifyWaiting, d.State.Message)
	return false, false
}

// next enters the next step as soon as nothing holds it up, or decides to promote
// after the last one.
func next(d *state.Draft, i int, why string) (another bool) {
	if opened, ended := gates.Open(d, i+1, overSince(&d.Snapshot, i)); !opened {
		return ended
	}
	insisted := d.Status.Step.AnalysisSkipped && (d.Paused() || d.Verdict.Reason == judge.ReasonSuspected)
	d.EnterStep(i + 1)
	d.Status.Step.FailureAccepted = insisted
	if i+1 == len(d.Steps) {
		record.DecidePromotion(d, state.ReasonPassed, why)
	}
	return true
}

// overSince is when step i could have ended first.
func overSince(s *state.Snapshot, i int) time.Time {
	if step := s.Status.Step; step.PassedAt != nil {
		return step.PassedAt.Time
	}
	return s.EndOf(i)
}
