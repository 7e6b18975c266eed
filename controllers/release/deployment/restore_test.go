// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// cameBack is a Deployment that is held on v2 after the restore of a backup: it controls the
// earlier canary, v2, which has two of its four pods, beside v1, which has all. Nothing is on record.
func cameBack(change func(*state.Draft)) *state.Draft {
	return promoting(func(d *state.Draft) {
		d.Status = v1alpha1.RolloutStatus{}
		d.Split = state.Split{Split: kit.Split{Presence: kit.Absent}, Observed: -1}
		v1, v2 := &d.ReplicaSets[0], &d.ReplicaSets[1]
		v1.Object, v1.Desired = kit.Object{Name: "v1", UID: "1"}, 4
		v2.Owner, v2.Marked, v2.Unpromoted, v2.Replicas, v2.Existing, v2.Available = kit.OwnerDeployment, false, true, 2, 2, 2
		change(d)
	})
}

func emptied(d *state.Draft) *state.Draft {
	d.ReplicaSets[1].Replicas, d.ReplicaSets[1].Existing, d.ReplicaSets[1].Available = 0, 0, 0
	return d
}

func TestAVersionThatIsHeldWithoutARecordIsNotRolledOut(t *testing.T) {
	const (
		empties = "scale ReplicaSet v2 to 0"
		rolls   = "mark the Deployment as managed, not paused"
	)
	for name, test := range map[string]struct {
		change func(*state.Draft)
		stable string
		does   []string
	}{
		"it came back with a part of the pods": {change: func(*state.Draft) {}, does: []string{empties}},
		"it came back with all pods, which are up": {change: func(d *state.Draft) {
			v2 := &d.ReplicaSets[1]
			v2.Desired, v2.Replicas, v2.Existing, v2.Available = 4, 4, 4, 4
		}},
		"it came back with all pods, and one is not up": {change: func(d *state.Draft) {
			v2 := &d.ReplicaSets[1]
			v2.Desired, v2.Replicas, v2.Existing, v2.Available = 4, 4, 4, 3
		}, does: []string{empties}},
		"it alone answers": {change: func(d *state.Draft) { d.ReplicaSets[0].Available = 0 }},
		"it alone is up, and a split leads elsewhere": {change: func(d *state.Draft) {
			d.ReplicaSets[0].Available, d.Split.Presence = 0, kit.Present
		}, does: []string{empties}},
		"its pods go":                       {change: func(d *state.Draft) { emptied(d); d.ReplicaSets[1].Existing = 1 }},
		"its pods are gone":                 {change: func(d *state.Draft) { emptied(d) }, stable: "v1"},
		"it never had any":                  {change: func(d *state.Draft) { d.ReplicaSets = d.ReplicaSets[:1] }, stable: "v1"},
		"pods of the other one start":       {change: func(d *state.Draft) { emptied(d).ReplicaSets[0].Available = 3 }},
		"no pod of the other one is up yet": {change: func(d *state.Draft) { emptied(d).ReplicaSets[0].Available = 0 }},
		"several versions came back beside it": {change: func(d *state.Draft) {
			emptied(d)
			old := d.ReplicaSets[0]
			old.Revision, old.Replicas, old.Existing, old.Available = "v0", 1, 1, 1
			d.ReplicaSets = slices.Insert(d.ReplicaSets, 0, old)
		}, stable: "v1"},
		"several versions of which none is up": {change: func(d *state.Draft) {
			emptied(d)
			old := d.ReplicaSets[0]
			old.Revision, old.Replicas, old.Existing, old.Available = "v0", 1, 1, 0
			d.ReplicaSets[0].Available = 0
			d.ReplicaSets = append(d.ReplicaSets, old)
		}},
		"Serin's mark is left and not its field": {change: func(d *state.Draft) { d.Workload.HeldBySerin = false }, does: []string{empties}},
		"Serin's field is left and not its mark": {change: func(d *state.Draft) { d.Workload.ManagedBy = "" }, does: []string{empties}},
		"another actor paused it":                {change: func(d *state.Draft) { d.Workload.ManagedBy, d.Workload.HeldBySerin = "", false }},
		"it is not paused":                       {change: func(d *state.Draft) { d.Workload.Paused = false }},
		"it was handed over":                     {change: func(d *state.Draft) { d.ReplicaSets[1].Unpromoted = false }, does: []string{rolls}},
		"no other version has pods": {change: func(d *state.Draft) {
			d.ReplicaSets[0].Replicas, d.ReplicaSets[0].Existing, d.ReplicaSets[0].Available = 0, 0, 0
		}, does: []string{rolls}},
		"the other one is only going":                   {change: func(d *state.Draft) { d.ReplicaSets[0].Replicas = 0 }, does: []string{rolls}},
		"it is not adopted yet":                         {change: func(d *state.Draft) { d.ReplicaSets[1].Owner = kit.OwnerNone }, does: []string{empties}},
		"its controller has not seen it":                {change: func(d *state.Draft) { d.ReplicaSets, d.Workload.Unseen = nil, true }},
		"its controller has seen it, and there is none": {change: func(d *state.Draft) { d.ReplicaSets = nil }, does: []string{rolls}},
		"the other one is not adopted yet":              {change: func(d *state.Draft) { emptied(d).ReplicaSets[0].Owner = kit.OwnerNone }},
	} {
		t.Run(name, func(t *testing.T) {
			d := cameBack(test.change)
			Target{}.Act(d, phaseFirst)
			var does []string
			for _, a := range d.Actions {
				does = append(does, a.String())
			}
			if !slices.Equal(does, test.does) {
				t.Errorf("it does %q, want %q", does, test.does)
			}
			if got := d.Status.Stable; (got == nil) != (test.stable == "") || got != nil && got.Revision != test.stable {
				t.Errorf("stable is %+v, want %q", got, test.stable)
			}
		})
	}
}

// deleted is a Rollout that is being deleted in the middle of that release, with its record.
func deleted(change func(*state.Draft)) *state.Draft {
	return cameBack(func(d *state.Draft) {
		d.Rollout.DeletionTimestamp, d.Rollout.Finalizers = new(metav1.Unix(60, 0)), []string{v1alpha1.Finalizer}
		d.Status.Stable = &v1alpha1.VersionStatus{Revision: "v1"}
		change(d)
	})
}

func TestACanaryThatTheDeploymentAdoptedLosesItsPodsBeforeTheRolloutGoes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   bool
	}{
		"it has pods":                   {func(*state.Draft) {}, true},
		"it has none":                   {func(d *state.Draft) { emptied(d) }, false},
		"it was handed over":            {func(d *state.Draft) { d.ReplicaSets[1].Unpromoted = false }, false},
		"the Deployment goes on":        {func(d *state.Draft) { d.Workload.Paused = false }, false},
		"it is not of the template":     {func(d *state.Draft) { d.ReplicaSets[1].Current = false }, false},
		"no version is stable":          {func(d *state.Draft) { d.Status.Stable = nil }, false},
		"it is stable":                  {func(d *state.Draft) { d.Status.Stable.Revision = "v2" }, false},
		"the stable one has no pods":    {func(d *state.Draft) { d.ReplicaSets[0].Replicas, d.ReplicaSets[0].Existing = 0, 0 }, false},
		"nothing has adopted it so far": {func(d *state.Draft) { d.ReplicaSets[1].Owner = kit.OwnerNone }, false},
	} {
		if got := adopted(&deleted(test.change).Snapshot) != nil; got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	d := deleted(func(*state.Draft) {})
	Target{}.Act(d, state.PhaseRestoring)
	if want := (kit.ScaleReplicaSet{Object: d.ReplicaSets[1].Object, Desired: 4}); !slices.Equal(d.Actions, []kit.Action{want}) {
		t.Errorf("it does %v", d.Actions)
	}
}

func TestTheRecordOfARolloutThatIsGoneIsReadFromItsObjects(t *testing.T) {
	service := func(revision string) kit.Backend {
		return kit.Backend{Presence: kit.Present, Ours: true, Revision: revision}
	}
	for name, test := range map[string]struct {
		change   func(*state.Draft)
		stable   string
		promoted bool
	}{
		"no Service":                             {func(*state.Draft) {}, "v1", false},
		"no Service, and the Deployment goes on": {func(d *state.Draft) { d.Workload.Paused = false }, "", false},
		"no Service and an older version": {func(d *state.Draft) {
			d.ReplicaSets = append(d.ReplicaSets, kit.ReplicaSet{Owner: kit.OwnerDeployment, Revision: "v0", Replicas: 1})
		}, "v1", false},
		"no Service and a canary of Serin's": {func(d *state.Draft) { d.ReplicaSets[1].Owner = kit.OwnerSerin }, "v1", false},
		"the Service of stable":              {func(d *state.Draft) { d.StableService = service("v0") }, "v0", false},
		"pods of one version":                {func(d *state.Draft) { emptied(d).StableService = service("v0") }, "v1", false},
		"a canary with a part of the pods, without its split": {func(d *state.Draft) {
			d.StableService, d.CanaryService = service("v1"), service("v2")
		}, "v1", false},
		"a canary with all pods, without its split": {func(d *state.Draft) {
			d.StableService, d.CanaryService, d.ReplicaSets[1].Replicas = service("v1"), service("v2"), 4
		}, "v1", true},
		"a canary with a part of the traffic": {func(d *state.Draft) {
			d.StableService, d.CanaryService, d.ReplicaSets[1].Replicas = service("v1"), service("v2"), 4
			d.Split.Presence, d.Split.Requested = kit.Present, strategy.Route{Weight: 60}
		}, "v1", false},
		"a canary with all traffic": {func(d *state.Draft) {
			d.StableService, d.CanaryService = service("v1"), service("v2")
			d.Split.Presence, d.Split.Requested = kit.Present, strategy.Route{Weight: 100}
		}, "v1", true},
	} {
		got := Reconstruct(&cameBack(test.change).Observation)
		if stable := got.Stable; (stable == nil) != (test.stable == "") || stable != nil && stable.Revision != test.stable || (got.Decision != nil) != test.promoted {
			t.Errorf("%s: stable %+v, decision %+v", name, stable, got.Decision)
		}
	}
}

func TestTheVersionThatAnswersIsTheOneWithTheMostAvailablePods(t *testing.T) {
	for name, test := range map[string]struct {
		others []kit.ReplicaSet
		want   string
	}{
		"more pods that start":      {[]kit.ReplicaSet{{Revision: "a", Replicas: 1, Available: 1}, {Revision: "b", Replicas: 4}}, "a"},
		"as many available":         {[]kit.ReplicaSet{{Revision: "a", Replicas: 1, Available: 1}, {Revision: "b", Replicas: 4, Available: 1}}, "b"},
		"none is available":         {[]kit.ReplicaSet{{Revision: "a", Replicas: 1}, {Revision: "b", Replicas: 4}}, "b"},
		"the first of several":      {[]kit.ReplicaSet{{Revision: "a", Replicas: 1}, {Revision: "b", Replicas: 1}}, "a"},
		"one that does not match":   {[]kit.ReplicaSet{{Revision: "a", Replicas: 1}, {Revision: "no", Replicas: 4}}, "a"},
		"one that has pods no more": {[]kit.ReplicaSet{{Revision: "a"}}, ""},
	} {
		got := largest(test.others, func(r *kit.ReplicaSet) bool { return r.Revision != "no" })
		if (got == nil) != (test.want == "") || got != nil && got.Revision != test.want {
			t.Errorf("%s: %+v, want %q", name, got, test.want)
		}
	}
}

func TestARejectedCanarySaysWhyAndIsKnownByThatWithoutARecord(t *testing.T) {
	const why = "WorseThanStable: it fails"
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   string
	}{
		"rejected":         {func(*state.Draft) {}, why},
		"a newer template": {func(d *state.Draft) { d.ReplicaSets[1].Current = false }, ""},
		"not rejected":     {func(d *state.Draft) { d.Status.Decision = nil }, ""},
	} {
		d := promoting(func(d *state.Draft) {
			d.Split = state.Split{Split: kit.Split{Presence: kit.Absent}}
			d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Revision: "v2", Reason: "WorseThanStable", Message: "it fails"}
			test.change(d)
		})
		removeCanaries(d, nil)
		if want := (kit.ScaleReplicaSet{Object: d.ReplicaSets[1].Object, Desired: 4, Rejected: test.want}); !slices.Equal(d.Actions, []kit.Action{want}) {
			t.Errorf("%s: it does %+v", name, d.Actions)
		}
	}
	for rejected, want := range map[string]*v1alpha1.Decision{
		why: {Action: v1alpha1.ActionRollBack, Revision: "v2", Reason: "WorseThanStable", Message: "it fails"},
		"":  nil,
	} {
		d := emptied(cameBack(func(d *state.Draft) { d.ReplicaSets[1].Rejected, d.ReplicaSets[1].Owner = rejected, kit.OwnerNone }))
		d.Workload.Revision = "by the UID of the new Deployment"
		Target{}.Act(d, phaseFirst)
		if got, known := (Target{}).Observe(&d.Snapshot).Revision, rejected != ""; known != (got == "v2") {
			t.Errorf("%q: until the Deployment adopts it, its template is taken for revision %q", rejected, got)
		}
		got := d.Status.Decision
		if got != nil {
			got.Time = metav1.MicroTime{}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: decided %+v, want %+v", rejected, got, want)
		}
	}
}

func TestARejectedCanaryWithoutReplicasIsNotWrittenAgain(t *testing.T) {
	d := promoting(func(d *state.Draft) {
		d.Split = state.Split{Split: kit.Split{Presence: kit.Absent}}
		d.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Revision: "v2"}
		d.ReplicaSets[1].Replicas = 0 // its pods end
	})
	if done := removeCanaries(d, nil); done || len(d.Actions) > 0 {
		t.Errorf("done %v, it does %+v", done, d.Actions)
	}
}
