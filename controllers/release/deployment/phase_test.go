// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// inStep is a release of v2 in its first step, with a canary of 1 of 4 pods that gets 20 %.
func inStep(change func(*state.Draft)) *state.Draft {
	return promoting(func(d *state.Draft) {
		d.Status.Decision, d.Status.Weight.Requested = nil, 20
		d.Split.Requested.Weight, d.Split.Observed = 20, 20
		d.ReplicaSets[1].Replicas, d.ReplicaSets[1].Existing, d.ReplicaSets[1].Available = 1, 1, 1
		d.StableService = kit.Backend{Presence: kit.Present, Ours: true, UpToDate: true, Revision: "v1"}
		d.CanaryService = kit.Backend{Presence: kit.Present, Ours: true, UpToDate: true, Revision: "v2"}
		change(d)
	})
}

// notBegun takes the release of inStep back to before its first pod.
func notBegun(d *state.Draft) {
	d.Status.Canary.StartedAt, d.Status.Step = nil, nil
	d.ReplicaSets = d.ReplicaSets[:1]
	d.Workload.Revision = "v2"
}

func TestWhetherThereIsSomethingToRelease(t *testing.T) {
	scaledToZero := func(d *state.Draft) {
		notBegun(d)
		d.Workload.Replicas, d.Split, d.StableService, d.CanaryService = 0, state.Split{}, kit.Backend{}, kit.Backend{}
		d.Split.Presence = kit.Absent
	}
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   state.Phase
	}{
		"a release in its first step":    {func(*state.Draft) {}, state.PhaseReleasing},
		"the template is stable's":       {func(d *state.Draft) { d.ReplicaSets[0].Current = true }, phaseSettled},
		"the spec can't be served":       {func(d *state.Draft) { scaledToZero(d); d.Refusal = &kit.Statement{} }, state.PhaseReleasing},
		"scaled to zero":                 {scaledToZero, phaseNoPods},
		"with pods":                      {func(d *state.Draft) { scaledToZero(d); d.Workload.Replicas = 1 }, state.PhaseReleasing},
		"a split is left":                {func(d *state.Draft) { scaledToZero(d); d.Split.Presence = kit.Present }, state.PhaseReleasing},
		"in a step already":              {func(d *state.Draft) { scaledToZero(d); d.Status.Step = &v1alpha1.StepStatus{} }, state.PhaseReleasing},
		"its template was rolled back":   {func(d *state.Draft) { scaledToZero(d); rejectV2(d) }, state.PhaseReleasing},
		"stable's Service is an old one": {func(d *state.Draft) { notBegun(d); d.StableService.Revision = "v0" }, phaseLeftovers},
		"it belongs to the release":      {func(d *state.Draft) { d.StableService.Revision = "v0" }, state.PhaseReleasing},
		"it is gone":                     {func(d *state.Draft) { notBegun(d); d.StableService = kit.Backend{Presence: kit.Absent} }, state.PhaseReleasing},
		"an old split is being deleted":  {func(d *state.Draft) { notBegun(d); d.Split.Deleting = true }, phaseLeftovers},
		"nothing is left":                {notBegun, state.PhaseReleasing},
	} {
		if got := (Target{}).Assess(&inStep(test.change).Snapshot); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func rejectV2(d *state.Draft) {
	d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Revision: "v2"}
}

func TestAnEarlierCanaryHoldsTheReleaseUp(t *testing.T) {
	earlier := func(d *state.Draft) {
		d.ReplicaSets = append(d.ReplicaSets, kit.ReplicaSet{Object: kit.Object{Name: "v0", UID: "0"}, Owner: kit.OwnerSerin, Marked: true, Revision: "v0", Replicas: 1, Existing: 1})
	}
	taken := func(d *state.Draft) { notBegun(d); d.CanaryService.Revision = "v0" }
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   state.Phase
	}{
		"its own pods":                       {func(*state.Draft) {}, state.PhaseReleasing},
		"pods of another canary":             {earlier, phaseReplacing},
		"another canary without pods":        {func(d *state.Draft) { earlier(d); d.ReplicaSets[2].Replicas, d.ReplicaSets[2].Existing = 0, 0 }, state.PhaseReleasing},
		"the canary's Service is an old one": {taken, phaseReplacing},
		"and gets no requests":               {func(d *state.Draft) { taken(d); d.Split.Requested, d.Split.Observed = strategy.Route{}, 0 }, state.PhaseReleasing},
		"and the release has begun":          {func(d *state.Draft) { d.CanaryService.Revision = "v0" }, state.PhaseReleasing},
		"and is gone":                        {func(d *state.Draft) { taken(d); d.CanaryService.Presence = kit.Absent }, state.PhaseReleasing},
	} {
		if got := (Target{}).Hindrance(&inStep(test.change).Snapshot); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestWhatHoldsTheTrafficUp(t *testing.T) {
	notLive := func(d *state.Draft) { d.Status.Step.ProgrammedAt = nil }
	withoutCanary := func(d *state.Draft) {
		notLive(d)
		d.ReplicaSets, d.Workload.Revision = d.ReplicaSets[:1], "v2"
		d.Split.Requested, d.Split.Observed = strategy.Route{}, 0
	}
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   state.Phase
	}{
		"nothing":        {func(*state.Draft) {}, state.PhaseReleasing},
		"scaled to zero": {func(d *state.Draft) { d.Workload.Replicas = 0 }, phaseSuspended},
		"promoted, and then to zero": {func(d *state.Draft) {
			d.Workload.Replicas = 0
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote}
		}, state.PhaseReleasing},
		"the split of a live step is gone": {func(d *state.Draft) { d.Split.Presence = kit.Absent }, phaseSplitDeleted},
		"it is being deleted":              {func(d *state.Draft) { d.Split.Deleting = true }, phaseSplitDeleted},
		"being deleted before it was live": {func(d *state.Draft) { notLive(d); d.Split.Deleting = true }, phaseSplitDeleted},
		"not made yet":                     {func(d *state.Draft) { withoutCanary(d); d.Split.Presence = kit.Absent }, phasePreparing},
		"no router needs one":              {func(d *state.Draft) { d.ByReplicas, d.Split.Presence = true, kit.Absent }, state.PhaseReleasing},
		"not paused":                       {func(d *state.Draft) { d.Workload.Paused = false }, phasePausing},
		"paused by another actor":          {func(d *state.Draft) { d.Workload.HeldBySerin = false }, phasePausing},
		"managed by another Rollout":       {func(d *state.Draft) { d.Workload.ManagedBy = "other" }, phasePausing},
		"which holds it":                   {func(d *state.Draft) { d.Workload.ManagedBy, d.Rival = "other", "other" }, state.PhaseReleasing},
		"stable's Service is an old one":   {func(d *state.Draft) { d.StableService.Revision = "v0" }, phasePreparing},
		"stable's Service is missing":      {func(d *state.Draft) { d.StableService.Presence = kit.Absent }, phasePreparing},
		"the canary's Service is old":      {func(d *state.Draft) { d.CanaryService.Revision = "v0" }, phasePreparing},
		"all traffic is stable's":          {withoutCanary, state.PhaseReleasing},
		"but that is not live":             {func(d *state.Draft) { withoutCanary(d); d.Split.Programmed = false }, phasePreparing},
		"the canary has a pod that ends":   {func(d *state.Draft) { d.Split.Programmed, d.ReplicaSets[1].Replicas = false, 0 }, state.PhaseReleasing},
		"the canary has no pods": {func(d *state.Draft) {
			d.Split.Programmed, d.ReplicaSets[1].Replicas, d.ReplicaSets[1].Existing = false, 0, 0
		}, phasePreparing},
		"but is promoted": {func(d *state.Draft) {
			d.Split.Programmed, d.ReplicaSets[1].Replicas, d.ReplicaSets[1].Existing = false, 0, 0
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote}
		}, state.PhaseReleasing},
		"promoted, and weights are unknown": {func(d *state.Draft) {
			d.Split.Programmed, d.Split.Observed, d.ReplicaSets[1].Replicas, d.ReplicaSets[1].Existing = false, -1, 0, 0
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote}
		}, phasePreparing},
	} {
		if got := (Target{}).Unprepared(&inStep(test.change).Snapshot); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
