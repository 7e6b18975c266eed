// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// promoting is a release of v2 with 4 pods whose promotion was decided, and all of whose
// traffic is live.
func promoting(change func(*state.Draft)) *state.Draft {
	began := metav1.Unix(0, 0)
	d := &state.Draft{}
	d.Now, d.Rollout = time.Unix(60, 0), &v1alpha1.Rollout{}
	d.Rollout.Name = "web"
	d.Workload = state.Workload{Presence: kit.Present, Replicas: 4, Paused: true, HeldBySerin: true, ManagedBy: "web"}
	d.ReplicaSets = []kit.ReplicaSet{
		{Object: kit.Object{Name: "v1", UID: "1"}, Owner: kit.OwnerDeployment, Revision: "v1", Replicas: 4, Existing: 4, Available: 4},
		{Object: kit.Object{Name: "v2", UID: "2"}, Owner: kit.OwnerSerin, Revision: "v2", Current: true, Marked: true, Replicas: 4, Existing: 4, Available: 4, Desired: 4},
	}
	d.Split = state.Split{Split: kit.Split{Presence: kit.Present, Ours: true, Programmed: true}, Requested: strategy.Route{Weight: 100}, Observed: 100}
	d.Status = v1alpha1.RolloutStatus{
		Stable: &v1alpha1.VersionStatus{Revision: "v1"}, Canary: &v1alpha1.VersionStatus{Revision: "v2", StartedAt: &began},
		Step:     &v1alpha1.StepStatus{Summary: "1/1", ProgrammedAt: new(metav1.NewMicroTime(began.Time))},
		Decision: &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Revision: "v2"}, Weight: &v1alpha1.WeightStatus{Requested: 100},
	}
	change(d)
	d.Facts = Target{}.Observe(&d.Snapshot)
	return d
}

func TestACanaryIsHandedOverOnlyCompleteAndWithAllTraffic(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   bool
	}{
		"complete":                 {func(*state.Draft) {}, true},
		"a part of the traffic":    {func(d *state.Draft) { d.Split.Observed = 99 }, false},
		"one pod is not available": {func(d *state.Draft) { d.ReplicaSets[1].Available = 3 }, false},
		"one pod too many":         {func(d *state.Draft) { d.ReplicaSets[1].Existing = 5 }, false},
		"scaled meanwhile":         {func(d *state.Draft) { d.Workload.Replicas = 5 }, false},
	} {
		d := promoting(test.change)
		Target{}.Act(d, state.PhasePromoting)
		handedOver := slices.Contains(d.Actions, kit.Action(kit.ReleaseCanary{Object: d.ReplicaSets[1].Object, Promotion: promotionOf(d.Status.Decision)}))
		if handedOver != test.want {
			t.Errorf("%s: %v", name, d.Actions)
		}
	}
}

func TestAllTrafficWaitsForAllPods(t *testing.T) {
	for available, want := range map[int32]int32{3: 20, 4: 100} {
		d := promoting(func(d *state.Draft) {
			d.Split.Requested.Weight, d.Split.Observed, d.Status.Weight.Requested = 20, 20, 20
			d.ReplicaSets[1].Available = available
		})
		Target{}.Act(d, state.PhasePromoting)
		if got := d.Status.Weight.Requested; got != want {
			t.Errorf("with %d pods weight %d is requested", available, got)
		}
	}
}

func TestAReplicaSetIsKnownToBeHandedOverByThePromotionThatItCarries(t *testing.T) {
	for name, test := range map[string]struct {
		change func(d *state.Draft, canary *kit.ReplicaSet)
		want   bool
	}{
		"it carries this one": {func(d *state.Draft, c *kit.ReplicaSet) { c.Promotion = promotionOf(d.Status.Decision) }, true},
		"and was not adopted yet": {func(d *state.Draft, c *kit.ReplicaSet) {
			c.Promotion, c.Owner = promotionOf(d.Status.Decision), kit.OwnerNone
		}, true},
		"and was made the canary again": {func(d *state.Draft, c *kit.ReplicaSet) {
			c.Promotion, c.Owner = promotionOf(d.Status.Decision), kit.OwnerSerin
		}, false},
		"and a rollback was decided": {func(d *state.Draft, c *kit.ReplicaSet) {
			c.Promotion = promotionOf(d.Status.Decision)
			d.Status.Decision.Action = v1alpha1.ActionRollBack
		}, false},
		"it carries an earlier one":         {func(_ *state.Draft, c *kit.ReplicaSet) { c.Promotion = "1" }, false},
		"it carries none":                   {func(*state.Draft, *kit.ReplicaSet) {}, false},
		"the status says so, as it used to": {func(d *state.Draft, _ *kit.ReplicaSet) { d.Status.Decision.HandedOver = true }, true},
		"the status says so of another one": {func(d *state.Draft, _ *kit.ReplicaSet) {
			d.Status.Decision.HandedOver, d.Status.Decision.Revision = true, "v3"
		}, false},
	} {
		d := promoting(func(d *state.Draft) {
			d.ReplicaSets[1].Owner = kit.OwnerDeployment
			test.change(d, &d.ReplicaSets[1])
		})
		if got := handedOver(&d.Snapshot) != nil; got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAPromotionIsOnRecordWhenTheTrafficHasReturned(t *testing.T) {
	returned := func(d *state.Draft) {
		d.ReplicaSets[0].Replicas, d.ReplicaSets[0].Existing = 0, 0
		d.Split = state.Split{Split: kit.Split{Presence: kit.Absent}}
	}
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   string
	}{
		"old pods are left":           {func(*state.Draft) {}, "v1"},
		"one of them is still there":  {func(d *state.Draft) { returned(d); d.ReplicaSets[0].Existing = 1 }, "v1"},
		"the split is there":          {func(d *state.Draft) { d.ReplicaSets[0].Replicas, d.ReplicaSets[0].Existing = 0, 0 }, "v1"},
		"the Services are there":      {func(d *state.Draft) { returned(d); d.CanaryService = kit.Backend{Presence: kit.Present, Ours: true} }, "v1"},
		"the Deployment is to go on":  {func(d *state.Draft) { returned(d); d.GuardInForce = true }, "v1"},
		"nothing is left":             {returned, "v2"},
		"the Deployment may go on":    {func(d *state.Draft) { returned(d); d.GuardInForce, d.Workload.Paused = true, false }, "v2"},
		"the template is a newer one": {func(d *state.Draft) { returned(d); d.GuardInForce, d.ReplicaSets[1].Current = true, false }, "v2"},
		"the Deployment has not adopted": {func(d *state.Draft) {
			returned(d)
			d.ReplicaSets = d.ReplicaSets[1:]
			d.ReplicaSets[0].Owner = kit.OwnerNone
		}, "v1"},
	} {
		d := promoting(func(d *state.Draft) {
			d.ReplicaSets[1].Promotion, d.ReplicaSets[1].Owner = promotionOf(d.Status.Decision), kit.OwnerDeployment
			test.change(d)
		})
		if p := (Target{}).Assess(&d.Snapshot); p != phaseAdopting {
			t.Fatalf("%s: %s", name, p)
		}
		before := d.Status.DeepCopy()
		Target{}.Act(d, phaseAdopting)
		if got := d.Status.Stable.Revision; got != test.want {
			t.Errorf("%s: %s is stable", name, got)
		}
		if test.want == "v1" && (len(d.Events) > 0 || d.Status.Step == nil || *d.Status.Decision != *before.Decision) {
			t.Errorf("%s: it is on record as promoted: %+v", name, d.Status)
		}
	}
}

func TestWithoutTheStableVersionWhatAnswersStays(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   state.Phase
	}{
		"only the canary has pods": {func(*state.Draft) {}, phaseLastCopy},
		"the canary has none":      {func(d *state.Draft) { d.ReplicaSets[0].Replicas, d.ReplicaSets[0].Existing = 0, 0 }, phaseFirst},
		"an earlier version comes up": {func(d *state.Draft) {
			d.ReplicaSets = append(d.ReplicaSets, kit.ReplicaSet{Owner: kit.OwnerDeployment, Revision: "v0", Replicas: 1})
		}, phaseFallback},
		"the template was rolled back": {func(d *state.Draft) {
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Revision: "v2"}
		}, phaseStableLost},
		"a user promotes fully": {func(d *state.Draft) {
			d.Rollout.Spec.Control = &v1alpha1.Control{Revision: "v2", Action: v1alpha1.ControlPromoteFull}
		}, state.PhaseControlled},
		"the promotion was decided": {func(d *state.Draft) {
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Revision: "v2"}
		}, state.PhasePromoting},
		"another actor paused": {func(d *state.Draft) { d.Workload.HeldBySerin = false }, phaseFirst},
	} {
		d := promoting(func(d *state.Draft) {
			d.ReplicaSets, d.Status.Decision = d.ReplicaSets[1:], nil
			test.change(d)
		})
		if got := (Target{}).Assess(&d.Snapshot); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestADeletedSplitBeginsTheStepAgainWhereItWasLive(t *testing.T) {
	for live, want := range map[bool]bool{true: true, false: false} {
		d := promoting(func(d *state.Draft) {
			d.Status.Decision, d.Split, d.Steps = nil, state.Split{}, []strategy.Step{{}}
			d.Split.Presence = kit.Absent
			if !live {
				d.Status.Step.ProgrammedAt = nil
			}
		})
		if again := (Target{}).Act(d, phaseSplitDeleted); again != want || d.Status.Step.ProgrammedAt != nil {
			t.Errorf("live %v: %v", live, again)
		}
	}
}

func TestWhatOthersDidToThePodsIsFound(t *testing.T) {
	slipped := func(d *state.Draft) { d.ReplicaSets[1].Owner = kit.OwnerDeployment }
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   state.Phase
	}{
		"nothing":                              {func(*state.Draft) {}, state.PhaseReleasing},
		"the canary lost its mark":             {func(d *state.Draft) { d.ReplicaSets[1].Marked = false }, phaseReclaiming},
		"the canary lost its controller":       {slipped, phaseReclaiming},
		"before the traffic was under control": {func(d *state.Draft) { slipped(d); d.Split.Observed = -1 }, phaseUnguarded},
		"no release had begun":                 {func(d *state.Draft) { slipped(d); d.Status.Canary = nil }, phaseUnguarded},
		"the template was rolled back": {func(d *state.Draft) {
			slipped(d)
			d.Status.Canary = nil
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Revision: "v2"}
		}, phaseUnpaused},
		"an old version came up from zero": {func(d *state.Draft) {
			d.Split.Presence = kit.Absent
			d.ReplicaSets = append(d.ReplicaSets, kit.ReplicaSet{Owner: kit.OwnerDeployment, Revision: "v0", Replicas: 1})
		}, phaseStale},
		"an old version, while there is a split": {func(d *state.Draft) {
			d.ReplicaSets = append(d.ReplicaSets, kit.ReplicaSet{Owner: kit.OwnerDeployment, Revision: "v0", Replicas: 1})
		}, state.PhaseReleasing},
	} {
		if got := assessDrift(&promoting(test.change).Snapshot); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The controller of a Deployment, also of a paused one, removes all other pods once the version of
// the template has all of its own: who takes those at the same time leaves none.
func TestTheVersionWhoseControllerRemovesAllOthersKeepsItsPods(t *testing.T) {
	full := func(r *kit.ReplicaSet) {
		r.Owner, r.Marked, r.Desired, r.Replicas, r.Existing, r.Available = kit.OwnerDeployment, false, 4, 4, 4, 4
	}
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   bool
	}{
		"it has all pods":                            {func(*state.Draft) {}, false},
		"one is not up":                              {func(d *state.Draft) { d.ReplicaSets[1].Available = 3 }, true},
		"it has a part":                              {func(d *state.Draft) { d.ReplicaSets[1].Replicas = 3 }, true},
		"the Deployment was scaled":                  {func(d *state.Draft) { d.Workload.Replicas = 5 }, true},
		"its controller has not seen that scale yet": {func(d *state.Draft) { d.ReplicaSets[1].Desired = 3 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			rejected := promoting(func(d *state.Draft) {
				full(&d.ReplicaSets[1])
				d.Status.Canary, d.Status.Decision = nil, &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Revision: "v2"}
				test.change(d)
			})
			Target{}.Act(rejected, phaseUnpaused)
			if got := scaledToNone(rejected, "v2"); got != test.want {
				t.Errorf("resumed on a rejected template: %v; it loses its pods: want %t", rejected.Actions, test.want)
			}
			promoted := promoting(func(d *state.Draft) {
				full(&d.ReplicaSets[1])
				test.change(d)
			})
			removeOldPods(promoted, &promoted.ReplicaSets[0], []*kit.ReplicaSet{&promoted.ReplicaSets[1]})
			if got := scaledToNone(promoted, "v2"); got != test.want {
				t.Errorf("after the promotion of the version before: %v; it loses its pods: want %t", promoted.Actions, test.want)
			}
			promoted.Actions, promoted.ReplicaSets[1].Current = nil, false
			removeOldPods(promoted, &promoted.ReplicaSets[0], []*kit.ReplicaSet{&promoted.ReplicaSets[1]})
			if !scaledToNone(promoted, "v2") {
				t.Errorf("a version that nothing is made of keeps its pods: %v", promoted.Actions)
			}
		})
	}
}

// scaledToNone is whether a version is to lose its pods.
func scaledToNone(d *state.Draft, name string) bool {
	return slices.ContainsFunc(d.Actions, func(a kit.Action) bool {
		scale, is := a.(kit.ScaleReplicaSet)
		return is && scale.Name == name && scale.Replicas == 0
	})
}

// A mesh that reads the TrafficSplit itself may send requests to the Services of the versions
// for a while after it is gone.
func TestTheServicesOfTheVersionsOutliveTheSplit(t *testing.T) {
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		gone  time.Duration
		drain time.Duration
		over  bool
		want  time.Duration
	}{
		"the split has just gone":              {drain: 10 * time.Second, want: 10 * time.Second},
		"not every proxy may have seen that":   {gone: 9 * time.Second, drain: 10 * time.Second, want: time.Second},
		"every proxy has":                      {gone: 10 * time.Second, drain: 10 * time.Second},
		"the router confirms that it is gone":  {},
		"it was gone after the look had begun": {gone: -time.Millisecond},
		"no weight is on record any more":      {drain: 10 * time.Second, over: true},
	} {
		d := inStep(func(d *state.Draft) {
			d.Now, d.DrainTime, d.Split.GoneSince = now, test.drain, now.Add(-test.gone)
			if test.over {
				d.Status.Weight = nil
			}
		})
		if got := drains(d); got != (test.want > 0) || d.After != test.want {
			t.Errorf("%s: %v, looks again after %s", name, got, d.After)
		}
	}
}
