// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/schedule"
)

var now = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

type maker struct{ state.Maker }

// atStep is a release with 20 % of the traffic, live, at its first step.
func atStep(change func(*state.Draft)) *state.Draft {
	d := &state.Draft{}
	d.Calendar, _ = schedule.Parse(nil, nil) // which is always open
	d.Now, d.Rollout, d.Deadline = now, &v1alpha1.Rollout{}, time.Minute
	d.Steps = []strategy.Step{{Route: strategy.Route{Weight: 20}}}
	d.Facts = state.Facts{Revision: "v2", Canary: &state.Canary{Replicas: 1, Existing: 1, Available: 1}}
	d.Service.Presence, d.Workload.Replicas = kit.Present, 4
	d.Split = state.Split{Split: kit.Split{Presence: kit.Present, Ours: true, Programmed: true}, Requested: strategy.Route{Weight: 20}, Observed: 20}
	d.Status.Canary = &v1alpha1.VersionStatus{Revision: "v2", StartedAt: new(metav1.NewTime(now))}
	d.Status.Step = &v1alpha1.StepStatus{Of: 1, Summary: "1/1", Weight: 20, ProgrammedAt: new(metav1.NewMicroTime(now))}
	d.Status.Weight = &v1alpha1.WeightStatus{Requested: 20}
	change(d)
	return d
}

func TestTheCanaryHasNoTrafficOnceThatIsConfirmedOrCannotBe(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   bool
	}{
		"it has some":                         {func(*state.Draft) {}, false},
		"0 is requested":                      {func(d *state.Draft) { d.Split.Requested.Weight = 0 }, false},
		"0 is live":                           {func(d *state.Draft) { d.Split.Requested.Weight, d.Split.Observed = 0, 0 }, true},
		"there is no split":                   {func(d *state.Draft) { d.Split.Presence = kit.Absent }, true},
		"the split could not be read":         {func(d *state.Draft) { d.Split.Presence = kit.Unknown }, false},
		"the split is another owner's":        {func(d *state.Draft) { d.Split.Ours = false }, true},
		"the split is being deleted":          {func(d *state.Draft) { d.Split.Deleting = true }, false},
		"that, and it had no weight":          {func(d *state.Draft) { d.Split.Deleting, d.Split.Observed = true, 0 }, true},
		"no router serves the split":          {func(d *state.Draft) { d.Split.Unserved = true }, true},
		"there is no root Service":            {func(d *state.Draft) { d.Service.Presence = kit.Absent }, true},
		"nothing can confirm it":              {func(d *state.Draft) { d.Unconfirmed = true }, true},
		"the canary is stable by now":         {func(d *state.Draft) { d.CanaryEnd, d.Status.Stable = "v2", &v1alpha1.VersionStatus{Revision: "v2"} }, true},
		"no weight was ever live, and no pod": {func(d *state.Draft) { d.Maker, d.Split.Requested.Weight, d.Split.Observed = maker{}, 0, -1 }, true},
		"no weight was ever live, but a pod": {func(d *state.Draft) {
			d.Maker, d.Split.Requested.Weight, d.Split.Observed = maker{}, 0, -1
			d.ReplicaSets = []kit.ReplicaSet{{Owner: kit.OwnerSerin, Existing: 1}}
		}, false},
	} {
		if got := Stopped(&atStep(test.change).Snapshot); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAnotherActorsWeightNeverCountsAsProgress(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   bool
	}{
		"the weight on record":            {func(*state.Draft) {}, false},
		"a higher one":                    {func(d *state.Draft) { d.Split.Requested.Weight = 90 }, true},
		"a higher one, with too few pods": {func(d *state.Draft) { d.Split.Requested.Weight, d.Canary.Available = 90, 0 }, true},
		"a lower one":                     {func(d *state.Draft) { d.Split.Requested.Weight = 10 }, true},
		"a lower one, with too few pods":  {func(d *state.Draft) { d.Split.Requested.Weight, d.Canary.Available = 10, 0 }, false},
		"a lower one, while it is paused": {func(d *state.Draft) {
			d.Split.Requested.Weight, d.Canary.Available, d.Rollout.Spec.Paused = 10, 0, true
		}, true},
		"one that is not Serin's form": {func(d *state.Draft) { d.Split.Requested.Weight = -1 }, true},
		"without a router":             {func(d *state.Draft) { d.Split.Requested.Weight, d.ByReplicas = 90, true }, false},
	} {
		if got := Tampered(&atStep(test.change).Snapshot); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAStepHasItsDeadline(t *testing.T) {
	preparing := func(d *state.Draft) {
		d.Status.Step.ProgrammedAt, d.Status.Step.PreparedAt = nil, new(metav1.NewMicroTime(now))
	}
	for name, test := range map[string]struct {
		change func(*state.Draft)
		after  time.Duration
		want   bool
	}{
		"in time":                     {preparing, 59 * time.Second, false},
		"too late":                    {preparing, time.Minute, true},
		"it is not prepared":          {func(d *state.Draft) { d.Status.Step.ProgrammedAt = nil }, time.Hour, false},
		"it is live":                  {func(*state.Draft) {}, time.Hour, false},
		"it was interrupted too long": {func(d *state.Draft) { d.Status.Step.InterruptedAt = new(metav1.NewMicroTime(now)) }, time.Minute, true},
		"no release has begun":        {func(d *state.Draft) { preparing(d); d.Status.Canary = nil }, time.Hour, false},
	} {
		d := atStep(test.change)
		d.Now = now.Add(test.after)
		if got := OrTooLate(d); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAGradualRollbackNeverRaisesAWeight(t *testing.T) {
	rolledBack := func(d *state.Draft) {
		d.RollBackOver = 10 * time.Minute
		d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Weight: 50, Time: metav1.NewMicroTime(now)}
		d.Split.Requested.Weight = 50
	}
	for name, test := range map[string]struct {
		change func(*state.Draft)
		after  time.Duration
		want   int32
	}{
		"at once":                 {func(*state.Draft) {}, 0, 45},
		"in the middle":           {func(*state.Draft) {}, 5 * time.Minute, 20},
		"at its end":              {func(*state.Draft) {}, 10 * time.Minute, 0},
		"the split has less":      {func(d *state.Draft) { d.Split.Requested.Weight = 5 }, 0, 5},
		"of those that match":     {func(d *state.Draft) { d.Split.Requested.Matches = []string{"testers"} }, 0, 0},
		"the canary can't answer": {func(d *state.Draft) { d.Canary.Available = 0 }, 0, 0},
		"no split":                {func(d *state.Draft) { d.Split.Presence = kit.Absent }, 0, 0},
		"the spec wants none":     {func(d *state.Draft) { d.RollBackOver = 0 }, 0, 0},
	} {
		d := atStep(func(d *state.Draft) { rolledBack(d); test.change(d) })
		d.Now = now.Add(test.after)
		if got, _ := rampedDown(&d.Snapshot); got != test.want {
			t.Errorf("%s: weight %d, want %d", name, got, test.want)
		}
	}
}

// A user who waits for the end of a release sees at the Rollout what keeps its TrafficSplit.
func TestTheWayBackSaysWhatTheTrafficSplitWaitsFor(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*kit.Split)
		want   string
	}{
		"it is not deleted yet":     {func(*kit.Split) {}, `Returning the traffic to the Service "web".`},
		"it does not say":           {func(s *kit.Split) { s.Deleting = true }, `Returning the traffic to the Service "web".`},
		"it waits for what comes":   {func(s *kit.Split) { s.Waiting = "not live yet" }, `Returning the traffic to the Service "web".`},
		"it says what it waits for": {func(s *kit.Split) { s.Deleting, s.Waiting = true, "a proxy does not stop" }, `Returning the traffic to the Service "web": a proxy does not stop.`},
	} {
		d := atStep(func(d *state.Draft) {
			d.Rollout.Spec.Service = "web"
			test.change(&d.Split.Split)
		})
		if done := CleanUp(d); done || d.State.Message != test.want {
			t.Errorf("%s: it is done: %t, and says %q, want %q", name, done, d.State.Message, test.want)
		}
	}
}
