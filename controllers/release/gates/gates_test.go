// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/schedule"
)

var now = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// atStep is a release at the first of two steps, 10 % and 100 %, whose weight is live.
func atStep(change func(*state.Draft)) *state.Draft {
	d := &state.Draft{}
	d.Calendar, _ = schedule.Parse(nil, nil) // which is always open
	d.Now, d.Rollout, d.Revision = now, &v1alpha1.Rollout{}, "v2"
	d.Steps = []strategy.Step{{Route: strategy.Route{Weight: 10}}, {Route: strategy.Route{Weight: 100}}}
	d.Status.Canary = &v1alpha1.VersionStatus{Revision: "v2", StartedAt: new(metav1.NewTime(now))}
	d.Status.Step = &v1alpha1.StepStatus{Of: 2, Summary: "1/2", Weight: 10, ProgrammedAt: new(metav1.NewMicroTime(now))}
	d.Status.Weight = &v1alpha1.WeightStatus{Requested: 10}
	d.Split.Presence, d.Split.Observed, d.Split.Requested = kit.Present, 10, strategy.Route{Weight: 10}
	change(d)
	return d
}

func TestTrafficGrowsOnlyWithoutAnObstacle(t *testing.T) {
	failing := func(d *state.Draft) { d.PauseOnFailure, d.Failing = true, true }
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   v1alpha1.Reason
	}{
		"nothing holds it up": {func(*state.Draft) {}, ""},
		"it is paused":        {func(d *state.Draft) { d.Rollout.Spec.Paused = true }, v1alpha1.ReasonPaused},
		"it is paused, and a stable version comes back": {func(d *state.Draft) {
			d.Rollout.Spec.Paused = true
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Reason: state.ReasonRollbackWindow}
		}, ""},
		"the analysis failed and pauses":       {failing, v1alpha1.ReasonAnalysisFailed},
		"a user skipped the failed step":       {func(d *state.Draft) { failing(d); d.Status.Step.AnalysisSkipped = true }, ""},
		"a user promoted fully in spite":       {func(d *state.Draft) { failing(d); promoting(d, state.ReasonPromotedFully) }, ""},
		"the last step passed before it fails": {func(d *state.Draft) { failing(d); promoting(d, state.ReasonPassed) }, v1alpha1.ReasonAnalysisFailed},
	} {
		got := v1alpha1.Reason("")
		if o := GrowthObstacle(&atStep(test.change).Snapshot); o != nil {
			got = o.reason
		}
		if got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAFreezeHoldsEvenAReleaseThatMayFinish(t *testing.T) {
	for name, test := range map[string]struct {
		freezes []v1alpha1.Freeze
		begun   bool
		want    bool
	}{
		"outside of its windows":               {nil, true, true},
		"outside of its windows, before begun": {nil, false, false},
		"in a freeze":                          {[]v1alpha1.Freeze{{Spec: v1alpha1.FreezeSpec{Reason: "audit"}}}, true, false},
	} {
		spec := &v1alpha1.Schedule{WhenClosed: v1alpha1.ClosedFinish, Windows: []v1alpha1.Window{{Start: "0 3 * * *", Duration: "1h"}}}
		d := atStep(func(d *state.Draft) {
			d.Rollout.Spec.Schedule = spec
			if !test.begun {
				d.Status.Canary = nil
			}
		})
		var err error
		if d.Calendar, err = schedule.Parse(spec, test.freezes); err != nil {
			t.Fatal(err)
		}
		if o := GrowthObstacle(&d.Snapshot); (o == nil) != test.want {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func promoting(d *state.Draft, reason string) {
	d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Reason: reason}
}

func TestHooksAreCalledAtTheirTimeOnly(t *testing.T) {
	hooks := func(when v1alpha1.HookTime) func(*state.Draft) {
		return func(d *state.Draft) { d.Rollout.Spec.Hooks = []v1alpha1.Hook{{Name: "ask", When: when}} }
	}
	for name, test := range map[string]struct {
		when   v1alpha1.HookTime
		step   int
		opened bool
	}{
		"before the release":              {v1alpha1.HookBeforeRelease, 0, false},
		"before the release, at step 2":   {v1alpha1.HookBeforeRelease, 1, true},
		"before a step":                   {v1alpha1.HookBeforeStep, 1, false},
		"before a step, at the promotion": {v1alpha1.HookBeforeStep, 2, true},
	} {
		d := atStep(hooks(test.when))
		if opened, ended := Open(d, test.step, now); opened != test.opened || ended || len(d.Questions) > 0 == test.opened {
			t.Errorf("%s: %v, %v, %d questions", name, opened, ended, len(d.Questions))
		}
	}
}

func TestAllTrafficNeedsTheApprovalBeforeThePromotion(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*state.Draft)
		asks   bool
	}{
		"a step with a part of it":         {func(d *state.Draft) { d.Status.Step.Weight = 50 }, false},
		"a step with all of it":            {func(d *state.Draft) { d.Status.Step.Weight = 100 }, true},
		"all of those that match":          {func(d *state.Draft) { d.Status.Step.Weight, d.Status.Step.Matches = 100, []string{"testers"} }, false},
		"an early promotion":               {func(d *state.Draft) { d.Status.Step.HoldoutUntil = new(metav1.NewMicroTime(now)) }, true},
		"the promotion":                    {func(d *state.Draft) { promoting(d, state.ReasonPassed) }, true},
		"a stable version that comes back": {func(d *state.Draft) { promoting(d, state.ReasonRollbackWindow) }, false},
		"all pods without a router":        {func(d *state.Draft) { d.Status.Step.Weight, d.ByReplicas = 100, true }, false},
	} {
		d := atStep(func(d *state.Draft) {
			d.Rollout.Spec.Hooks = []v1alpha1.Hook{{Name: "ask", When: v1alpha1.HookBeforePromotion}}
			test.change(d)
		})
		if may, _ := grow(d); may == test.asks {
			t.Errorf("%s: %v", name, may)
		}
	}
}

func TestEvidenceThatCameUpHoldsACanaryWithTraffic(t *testing.T) {
	suspected := func(d *state.Draft) { d.Verdict = judge.Result{Reason: judge.ReasonSuspected} }
	if may, _ := grow(atStep(suspected)); may {
		t.Error("it grows in spite of the evidence")
	}
	without := func(d *state.Draft) { suspected(d); d.Status.Weight, d.Split = nil, state.Split{} }
	if may, _ := grow(atStep(without)); !may {
		t.Error("without traffic there would never be other evidence")
	}
}

func TestAHookEndsTheReleaseWhenItRefusesOrIsLate(t *testing.T) {
	for name, test := range map[string]struct {
		answer          state.Answer
		after           time.Duration
		approved, ended bool
	}{
		"it has not answered":            {state.Answer{Tried: true}, time.Second, false, false},
		"it approves":                    {state.Answer{Tried: true, Final: true, Taken: true}, time.Second, true, false},
		"it refuses":                     {state.Answer{Tried: true, Final: true}, time.Second, false, true},
		"it is late":                     {state.Answer{Tried: true}, time.Minute, false, true},
		"it is late, but was not called": {state.Answer{}, time.Hour, false, false},
	} {
		d := atStep(func(d *state.Draft) {
			d.Rollout.Spec.Hooks = []v1alpha1.Hook{{Name: "ask", When: v1alpha1.HookBeforeStep, Timeout: "1m"}}
		})
		CallHooks(d, v1alpha1.HookBeforeStep, 1)
		d.Answers = map[string]state.Answer{d.Status.Hooks[0].ID: test.answer}
		d.Now = now.Add(test.after)
		if approved, ended := CallHooks(d, v1alpha1.HookBeforeStep, 1); approved != test.approved || ended != test.ended {
			t.Errorf("%s: approved %v, ended %v", name, approved, ended)
		}
	}
}
