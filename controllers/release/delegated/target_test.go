// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

var ended = metav1.NewMicroTime(time.Unix(50, 0))

// inStep is a release of a CanaryRelease in its first step, which gives the canary 20 %.
func inStep(change func(*state.Draft)) *state.Draft {
	began := metav1.Unix(0, 0)
	d := &state.Draft{}
	d.Now, d.Rollout, d.RouterName = time.Unix(60, 0), &v1alpha1.Rollout{}, v1alpha1.RouterNginx
	d.Rollout.Name, d.Rollout.Spec.WorkloadRef.Name = "web", "shop"
	d.Service.Presence = kit.Present
	d.Deadline, d.Steps = 10*time.Minute, []strategy.Step{{Route: strategy.Route{Weight: 20}}}
	d.Delegated = state.Delegated{Presence: kit.Present, Rollout: "web", Revision: "v2", Stable: "v1", Ready: 1, Replicas: 1, Held: true}
	d.Split = state.Split{Split: kit.Split{Presence: kit.Present, Ours: true, Programmed: true}, Requested: strategy.Route{Weight: 20}, Observed: 20}
	d.Status = v1alpha1.RolloutStatus{
		Stable: &v1alpha1.VersionStatus{Revision: "v1"}, Canary: &v1alpha1.VersionStatus{Revision: "v2", StartedAt: &began},
		Step:   &v1alpha1.StepStatus{Summary: "1/1", ProgrammedAt: new(metav1.NewMicroTime(began.Time))},
		Weight: &v1alpha1.WeightStatus{Requested: 20},
	}
	change(d)
	d.Facts = Target{}.Observe(&d.Snapshot)
	d.Refusal = d.Unfit
	return d
}

func decided(t v1alpha1.CanaryTransition) *v1alpha1.CanaryDecision {
	return &v1alpha1.CanaryDecision{Transition: t, Message: "By a user."}
}

func over(t v1alpha1.CanaryTransition) *v1alpha1.CanaryDecision {
	return &v1alpha1.CanaryDecision{Transition: t, Message: "By a user.", EndedAt: &ended}
}

func gone(d *state.Draft) { d.Delegated = state.Delegated{Presence: kit.Absent} }

func TestWhatHoldsTheReleaseOfACanaryReleaseUp(t *testing.T) {
	notBegun := func(d *state.Draft) {
		d.Status.Canary.StartedAt, d.Status.Step, d.Status.Weight = nil, nil, nil
		d.Split.Requested, d.Split.Observed = strategy.Route{}, 0
	}
	promoted := func(d *state.Draft) {
		d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Revision: "v2", HandedOver: true}
	}
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   state.Phase
	}{
		"in a step":                      {func(*state.Draft) {}, state.PhaseReleasing},
		"promoted":                       {promoted, phaseDelegated},
		"not handed over yet":            {func(d *state.Draft) { promoted(d); d.Status.Decision.HandedOver = false }, state.PhaseReleasing},
		"rolled back":                    {func(d *state.Draft) { promoted(d); d.Status.Decision.Action = v1alpha1.ActionRollBack }, state.PhaseReleasing},
		"deleted":                        {gone, phaseEndedByOthers},
		"being deleted":                  {func(d *state.Draft) { d.Delegated.Deleting = true }, phaseEndedByOthers},
		"decided by a user":              {func(d *state.Draft) { d.Delegated.Decision = decided(v1alpha1.CanaryTransitionAdopted) }, phaseEndedByOthers},
		"without consent":                {func(d *state.Draft) { d.Delegated.Rollout = "" }, phaseEndedByOthers},
		"about to begin":                 {notBegun, state.PhaseReleasing},
		"deleted before it began":        {func(d *state.Draft) { notBegun(d); gone(d) }, phaseUndelegated},
		"without ready pods":             {func(d *state.Draft) { notBegun(d); d.Delegated.Ready = 0 }, phaseUndelegated},
		"with traffic before it began":   {func(d *state.Draft) { notBegun(d); d.Split.Observed = 5 }, phaseUndelegated},
		"refused, and without any pods":  {func(d *state.Draft) { notBegun(d); d.Delegated.Ready, d.Delegated.Rollout = 0, "" }, state.PhaseReleasing},
		"decided before it began":        {func(d *state.Draft) { notBegun(d); d.Delegated.Decision = decided(v1alpha1.CanaryTransitionAdopted) }, phaseUndelegated},
		"in a step, whose pods all died": {func(d *state.Draft) { d.Delegated.Ready = 0 }, state.PhaseReleasing},
	} {
		if got := (Target{}).Hindrance(&inStep(test.change).Snapshot); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestTheDeletedCanaryReleaseIsStillWhatIsReleased(t *testing.T) {
	if d := inStep(gone); d.Revision != "v2" {
		t.Errorf("%q is released", d.Revision)
	}
	if d := inStep(func(d *state.Draft) { d.Delegated.Revision = "v3" }); d.Revision != "v3" {
		t.Errorf("%q is released", d.Revision)
	}
}

func TestTheStableRevisionIsKeptWhileItIsUnknown(t *testing.T) {
	if d := inStep(gone); d.NewStable != nil {
		t.Errorf("%+v becomes stable", d.NewStable)
	}
	if d := inStep(func(*state.Draft) {}); d.NewStable == nil || d.NewStable.Revision != "v1" {
		t.Errorf("%+v becomes stable", d.NewStable)
	}
	if d := inStep(func(d *state.Draft) { gone(d); d.Status.Stable = nil }); d.NewStable == nil {
		t.Error("nothing is said of a stable version")
	}
}

func TestWhatACanaryReleaseCantBeReleasedFor(t *testing.T) {
	one := intstr.FromInt32(1)
	step := func(s v1alpha1.Step) func(*state.Draft) {
		return func(d *state.Draft) { d.Rollout.Spec.Strategy.Steps = []v1alpha1.Step{{}, s} }
	}
	for want, change := range map[string]func(*state.Draft){
		"":                   func(*state.Draft) {},
		"spec.router":        func(d *state.Draft) { d.RouterName = v1alpha1.RouterNone },
		"spec.configuration": func(d *state.Draft) { d.Rollout.Spec.Configuration = &v1alpha1.Configuration{} },
		"spec.trafficDistribution": func(d *state.Draft) {
			d.Rollout.Spec.TrafficDistribution = new(v1alpha1.TrafficDistribution("PreferClose"))
		},
		"spec.routeRefs":                           func(d *state.Draft) { d.Rollout.Spec.RouteRefs = make([]v1alpha1.RouteReference, 1) },
		"spec.rollbackWindow":                      func(d *state.Draft) { d.Rollout.Spec.RollbackWindow = &v1alpha1.RollbackWindow{Revisions: 1} },
		"spec.strategy.steps[1].matches":           step(v1alpha1.Step{Matches: []string{"beta"}}),
		"spec.strategy.steps[1].mirror":            step(v1alpha1.Step{Mirror: new(int32(1))}),
		"spec.strategy.steps[1].canaryReplicas":    step(v1alpha1.Step{CanaryReplicas: &one}),
		"canaryReleases.enabled":                   func(d *state.Draft) { d.Delegated.Unserved = true },
		`set its spec.delegation.rollout to "web"`: func(d *state.Draft) { d.Delegated.Rollout = "other" },
		"spec.service: no ports":                   func(d *state.Draft) { d.Delegated.Problem = "no ports" },
	} {
		got := inStep(change).Refusal
		if want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Message, want)) {
			t.Errorf("%q: %+v", want, got)
		}
	}
	for name, change := range map[string]func(*state.Draft){
		"a mirror of nothing":      step(v1alpha1.Step{Mirror: new(int32(0))}),
		"a window of no revisions": func(d *state.Draft) { d.Rollout.Spec.RollbackWindow = &v1alpha1.RollbackWindow{} },
		"ended without consent": func(d *state.Draft) {
			d.Delegated.Rollout, d.Delegated.Decision = "", over(v1alpha1.CanaryTransitionAdopted)
		},
		"unmeasured, but ending": func(d *state.Draft) {
			d.Delegated.Problem, d.Delegated.Decision = "no ports", decided(v1alpha1.CanaryTransitionAdopted)
		},
		"deleted": gone,
	} {
		if got := inStep(change).Refusal; got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestHowAnotherActorEndsARelease(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*state.Draft)
		another bool
		want    string
		reason  string
	}{
		"deleted":         {gone, true, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonDeprecated},
		"being deleted":   {func(d *state.Draft) { d.Delegated.Deleting = true }, false, "", ""},
		"deprecated":      {func(d *state.Draft) { d.Delegated.Decision = decided(v1alpha1.CanaryTransitionDeprecated) }, true, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonDeprecated},
		"being adopted":   {func(d *state.Draft) { d.Delegated.Decision = decided(v1alpha1.CanaryTransitionAdopted) }, false, "", ""},
		"adopted":         {func(d *state.Draft) { d.Delegated.Decision = over(v1alpha1.CanaryTransitionAdopted) }, true, v1alpha1.OutcomePromoted, ""},
		"without consent": {func(d *state.Draft) { d.Delegated.Rollout = "" }, true, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonConflict},
	} {
		d := inStep(test.change)
		if got := (Target{}).Act(d, phaseEndedByOthers); got != test.another {
			t.Errorf("%s: another phase %v", name, got)
		}
		if got := outcome(d); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if decision := d.Status.Decision; test.reason != "" && (decision == nil || decision.Reason != test.reason) {
			t.Errorf("%s: %+v, want the reason %s", name, decision, test.reason)
		}
		if len(d.Actions) > 0 {
			t.Errorf("%s: %v", name, d.Actions)
		}
	}
}

func outcome(d *state.Draft) string {
	if len(d.Status.History) == 0 {
		return ""
	}
	return d.Status.History[0].Outcome
}

func TestACanaryReleaseIsAdoptedOnlyWithAllTraffic(t *testing.T) {
	all := func(d *state.Draft) { d.Split.Requested.Weight, d.Split.Observed = 100, 100 }
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   bool
	}{
		"all traffic":       {all, true},
		"not live yet":      {func(d *state.Draft) { all(d); d.Split.Observed = 20 }, false},
		"no ready pods":     {func(d *state.Draft) { all(d); d.Delegated.Ready = 0 }, false},
		"not requested yet": {func(*state.Draft) {}, false},
	} {
		d := inStep(func(d *state.Draft) {
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Revision: "v2"}
			test.change(d)
		})
		Target{}.Act(d, state.PhasePromoting)
		if got := d.Status.Decision.HandedOver; got != test.want {
			t.Errorf("%s: handed over %v", name, got)
		}
	}
	d := inStep(func(d *state.Draft) {
		d.Status.Decision, d.Delegated.Ready = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Revision: "v2"}, 0
	})
	Target{}.Act(d, state.PhasePromoting)
	if got := d.Status.Weight.Requested; got != 20 {
		t.Errorf("without ready pods the canary gets %d %%", got)
	}
}

func TestAnAdoptionEnds(t *testing.T) {
	adopt := state.SetDelegation{Weight: 100, Transition: v1alpha1.CanaryTransitionAdopted}
	for name, test := range map[string]struct {
		change  func(*state.Draft)
		another bool
		want    string
		action  kit.Action
	}{
		"wanted now": {func(*state.Draft) {}, false, "", adopt},
		"wanted already": {func(d *state.Draft) {
			d.Delegated.Transition, d.Split.Requested.Weight = v1alpha1.CanaryTransitionAdopted, 100
		}, false, "", nil},
		"weight changed":  {func(d *state.Draft) { d.Delegated.Transition = v1alpha1.CanaryTransitionAdopted }, false, "", adopt},
		"under way":       {func(d *state.Draft) { d.Delegated.Decision = decided(v1alpha1.CanaryTransitionAdopted) }, false, "", nil},
		"adopted":         {func(d *state.Draft) { d.Delegated.Decision = over(v1alpha1.CanaryTransitionAdopted) }, true, v1alpha1.OutcomePromoted, nil},
		"deprecated":      {func(d *state.Draft) { d.Delegated.Decision = decided(v1alpha1.CanaryTransitionDeprecated) }, true, v1alpha1.OutcomeRolledBack, nil},
		"deleted":         {gone, true, v1alpha1.OutcomeRolledBack, nil},
		"without consent": {func(d *state.Draft) { d.Delegated.Rollout = "" }, true, v1alpha1.OutcomeRolledBack, nil},
	} {
		d := inStep(func(d *state.Draft) {
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Revision: "v2", HandedOver: true}
			test.change(d)
		})
		if got := (Target{}).Act(d, phaseDelegated); got != test.another {
			t.Errorf("%s: another phase %v", name, got)
		}
		if got := outcome(d); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if does := slices.Contains(d.Actions, test.action); test.action != nil && !does || test.action == nil && len(d.Actions) > 0 {
			t.Errorf("%s: %v", name, d.Actions)
		}
	}
}

func TestAnAbortOfAnAdoptionIsDeclined(t *testing.T) {
	d := inStep(func(d *state.Draft) {
		d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Revision: "v2", HandedOver: true}
		d.Rollout.Spec.Control = &v1alpha1.Control{Revision: "v2", Action: v1alpha1.ControlAbort}
	})
	Target{}.Act(d, phaseDelegated)
	if c := d.Status.Control; c == nil || !strings.Contains(c.Ignored, "set its spec.transition to Deprecated") {
		t.Errorf("%+v", c)
	}
}

func TestARollbackRemovesTheCanary(t *testing.T) {
	deprecate := state.SetDelegation{Weight: 0, Transition: v1alpha1.CanaryTransitionDeprecated}
	for name, test := range map[string]struct {
		change  func(*state.Draft)
		another bool
		action  kit.Action
	}{
		"at once":          {func(*state.Draft) {}, false, deprecate},
		"little by little": {func(d *state.Draft) { d.RollBackOver = 2 * time.Minute }, false, state.SetDelegation{Weight: 16}},
		"being deleted":    {func(d *state.Draft) { d.RollBackOver, d.Delegated.Deleting = 2*time.Minute, true }, false, deprecate},
		"under way":        {func(d *state.Draft) { d.Delegated.Decision = decided(v1alpha1.CanaryTransitionDeprecated) }, false, nil},
		"over":             {func(d *state.Draft) { d.Delegated.Decision = over(v1alpha1.CanaryTransitionDeprecated) }, false, nil},
		"without consent":  {func(d *state.Draft) { d.Delegated.Rollout = "" }, false, nil},
		"gone":             {gone, true, nil},
	} {
		d := inStep(func(d *state.Draft) {
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Revision: "v2", Weight: 20, Time: metav1.NewMicroTime(time.Unix(40, 0))}
			test.change(d)
		})
		if got := (Target{}).Act(d, state.PhaseRolledBack); got != test.another {
			t.Errorf("%s: another phase %v", name, got)
		}
		if does := slices.Contains(d.Actions, test.action); test.action != nil && !does || test.action == nil && len(d.Actions) > 0 {
			t.Errorf("%s: %v", name, d.Actions)
		}
		if ends := d.Status.Step == nil; ends != (test.another || name == "over" || name == "without consent") {
			t.Errorf("%s: the step is %+v", name, d.Status.Step)
		}
	}
}

func TestACanaryReleaseGetsWeightsOnlyWithItsConsent(t *testing.T) {
	for rollout, want := range map[string]int{"web": 1, "other": 0, "": 0} {
		d := inStep(func(d *state.Draft) { d.Delegated.Rollout = rollout })
		Target{}.Act(d, state.PhaseWithdrawn)
		if len(d.Actions) != want {
			t.Errorf("delegated to %q: %v", rollout, d.Actions)
		}
	}
}

func TestADeletedRolloutLetsGoOfItsCanaryRelease(t *testing.T) {
	away := func(d *state.Draft) { d.Split.Requested, d.Split.Observed = strategy.Route{}, 0 }
	for name, test := range map[string]struct {
		change      func(*state.Draft)
		clear, done bool
	}{
		"with traffic":       {func(*state.Draft) {}, false, false},
		"without traffic":    {away, true, true},
		"not live yet":       {func(d *state.Draft) { away(d); d.Split.Programmed = false }, false, false},
		"after the deadline": {func(d *state.Draft) { d.Now = d.Now.Add(time.Hour) }, true, true},
		"being adopted":      {func(d *state.Draft) { away(d); d.Delegated.Transition = v1alpha1.CanaryTransitionAdopted }, false, false},
		"ended":              {func(d *state.Draft) { d.Delegated.Decision = over(v1alpha1.CanaryTransitionAdopted) }, true, true},
		"ended as it was to": {func(d *state.Draft) {
			d.Delegated.Transition, d.Delegated.Decision = v1alpha1.CanaryTransitionAdopted, over(v1alpha1.CanaryTransitionAdopted)
		}, true, true},
		"decided by a user":       {func(d *state.Draft) { d.Delegated.Decision = decided(v1alpha1.CanaryTransitionAdopted) }, true, true},
		"being deleted":           {func(d *state.Draft) { d.Delegated.Deleting = true }, true, true},
		"without shared traffic":  {func(d *state.Draft) { d.Delegated.Unshared = true }, true, true},
		"gone":                    {gone, false, true},
		"delegated to another":    {func(d *state.Draft) { d.Delegated.Rollout = "other" }, false, true},
		"with nothing to clear":   {func(d *state.Draft) { away(d); d.Delegated.Held = false }, false, true},
		"with other content only": {func(d *state.Draft) { away(d); d.Delegated.Revision = "v3" }, false, false},
	} {
		d := inStep(func(d *state.Draft) {
			d.Rollout.DeletionTimestamp = new(metav1.Unix(40, 0))
			test.change(d)
		})
		Target{}.Act(d, state.PhaseRestoring)
		if got := slices.Contains(d.Actions, kit.Action(kit.RemoveFinalizer{})); got != test.done {
			t.Errorf("%s: lets go %v: %v", name, got, d.Actions)
		}
		if got := slices.Contains(d.Actions, kit.Action(state.ClearDelegation{})); got != test.clear {
			t.Errorf("%s: clears %v: %v", name, got, d.Actions)
		}
	}
}

func TestWhyThereIsNothingToRelease(t *testing.T) {
	for want, test := range map[string]struct {
		change func(*state.Draft)
		ready  bool
	}{
		"There is no CanaryRelease":       {gone, true},
		"has ended, adopted":              {func(d *state.Draft) { d.Delegated.Decision = over(v1alpha1.CanaryTransitionAdopted) }, true},
		"is ending":                       {func(d *state.Draft) { d.Delegated.Deleting = true }, true},
		"has no ready pods":               {func(d *state.Draft) { d.Delegated.Ready = 0 }, true},
		"Waiting until the CanaryRelease": {func(*state.Draft) {}, false},
	} {
		d := inStep(test.change)
		Target{}.Act(d, phaseUndelegated)
		if d.State.Ready != test.ready || !strings.Contains(d.State.Message, want) {
			t.Errorf("%s: ready %v, %q", want, d.State.Ready, d.State.Message)
		}
		if test.ready && d.Status.Weight != nil {
			t.Errorf("%s: a weight is requested", want)
		}
	}
}
