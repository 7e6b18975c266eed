// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

func TestATimeOfTheStatusIsRoundedUp(t *testing.T) {
	at := time.Date(2030, 1, 2, 12, 0, 0, 1500, time.UTC)
	s := Snapshot{Observation: Observation{Now: at}}
	if got := s.Micro(); !got.Time.Equal(at.Truncate(time.Microsecond).Add(time.Microsecond)) {
		t.Errorf("%v is written as %v", at, got)
	}
}

func TestACanaryGetsTrafficWithAnyLiveWeight(t *testing.T) {
	for observed, want := range map[int32]bool{-1: false, 0: false, 1: true} {
		s := Snapshot{}
		s.Split.Presence, s.Split.Observed = kit.Present, observed
		if s.Called() != want {
			t.Errorf("weight %d: %v", observed, !want)
		}
	}
}

func TestOnlyTheRejectedRevisionIsRolledBack(t *testing.T) {
	s := Snapshot{Facts: Facts{Revision: "v2"}}
	for revision, want := range map[string]bool{"v2": true, "v1": false} {
		s.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionRollBack, Revision: revision}
		if s.RolledBack() != want {
			t.Errorf("%s: %v", revision, !want)
		}
	}
}

func TestADeadlineIsJudgedWhenItsTimeIsOverAndCouldBeSeen(t *testing.T) {
	end := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	at := end.Add
	for name, test := range map[string]struct {
		now  time.Time
		jump Jump
		want bool
	}{
		"before it":                 {now: at(-1)},
		"exactly at it":             {now: end, want: true},
		"after it":                  {now: at(1), want: true},
		"it passed in a jump":       {now: at(20 * time.Second), jump: Jump{at(-time.Minute), at(10 * time.Second)}},
		"it passed in an old jump":  {now: at(time.Hour), jump: Jump{at(-time.Minute), at(10 * time.Second)}, want: true},
		"it passed before the jump": {now: at(20 * time.Second), jump: Jump{at(time.Second), at(10 * time.Second)}, want: true},
		"the jump ended before it":  {now: at(time.Second), jump: Jump{at(-time.Minute), at(-time.Second)}, want: true},
	} {
		s := Snapshot{Observation: Observation{Now: test.now, Jump: test.jump}}
		if over, look := s.Over(end); over != test.want || over == look.After(test.now) {
			t.Errorf("%s: %v, look at %s", name, over, look)
		}
	}
}

// someMaker stands for a target whose pods Serin makes.
type someMaker struct{ Maker }

func TestACanaryIsReadyWithExactlyThePodsThatAreWanted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Canary)
		want   bool
	}{
		"all are there":             {func(*Canary) {}, true},
		"one is not available":      {func(c *Canary) { c.Available-- }, false},
		"one more is wanted":        {func(c *Canary) { c.Replicas++ }, false},
		"it knows an earlier scale": {func(c *Canary) { c.Desired-- }, false},
	} {
		s := Snapshot{Facts: Facts{Maker: someMaker{}, Canary: &Canary{Replicas: 2, Existing: 2, Available: 2, Desired: 4}}}
		s.Workload.Replicas = 4
		test.change(s.Canary)
		if s.Ready(2) != test.want {
			t.Errorf("%s: %v", name, !test.want)
		}
	}
}

func TestASplitWhoseCanaryIsStableByNowIsKnown(t *testing.T) {
	for name, test := range map[string]struct {
		stable *v1alpha1.VersionStatus
		end    string
		want   bool
	}{
		"no version is stable":       {nil, "v2", false},
		"another revision is stable": {&v1alpha1.VersionStatus{Revision: "v1"}, "v2", false},
		"the canary's revision is":   {&v1alpha1.VersionStatus{Revision: "v2"}, "v2", true},
		"the canary's Service is":    {&v1alpha1.VersionStatus{Revision: "x", Service: "green"}, "green", true},
		"the split leads to nothing": {&v1alpha1.VersionStatus{}, "", false},
	} {
		s := Snapshot{Facts: Facts{CanaryEnd: test.end}}
		s.Status.Stable = test.stable
		if s.CanaryIsStable() != test.want {
			t.Errorf("%s: %v", name, !test.want)
		}
	}
}

func TestARouteIsLiveWhenTheRouterReportsExactlyIt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Snapshot)
		want   bool
	}{
		"it is reported":             {func(*Snapshot) {}, true},
		"another one is requested":   {func(s *Snapshot) { s.Split.Requested.Weight = 20 }, false},
		"another weight is reported": {func(s *Snapshot) { s.Split.Observed = 20 }, false},
		"it is not programmed":       {func(s *Snapshot) { s.Split.Programmed = false }, false},
		"no router is there":         {func(s *Snapshot) { s.ByReplicas, s.Split = true, Split{} }, true},
	} {
		s := Snapshot{}
		s.Split = Split{Split: kit.Split{Presence: kit.Present, Programmed: true}, Requested: strategy.Route{Weight: 10}, Observed: 10}
		test.change(&s)
		if s.Routed(strategy.Route{Weight: 10}) != test.want {
			t.Errorf("%s: %v", name, !test.want)
		}
	}
}

// While the record of a weight is still to come, the split already requests it.
func TestWhatWasRequestedLastIsKnownByTheStepThatRequestsIt(t *testing.T) {
	of := func(pods *intstr.IntOrString, available int32) *Snapshot {
		s := &Snapshot{}
		s.Canary, s.Steps = &Canary{Available: available}, []strategy.Step{{Route: strategy.Route{Weight: 45}, Pods: pods}}
		s.Workload.Replicas = 9
		s.Split.Presence, s.Split.Requested = kit.Present, strategy.Route{Weight: 45}
		s.Status = v1alpha1.RolloutStatus{
			Canary: &v1alpha1.VersionStatus{StartedAt: &metav1.Time{}}, Step: &v1alpha1.StepStatus{Weight: 45},
			Weight: &v1alpha1.WeightStatus{Requested: 30},
		}
		return s
	}
	for name, test := range map[string]struct {
		pods      *intstr.IntOrString
		available int32
		want      int32
	}{
		"the share of the weight is ready":        {available: 5, want: 45},
		"the share of the weight is not ready":    {available: 4, want: 30},
		"fewer pods that the step wants":          {pods: new(intstr.FromInt32(4)), available: 4, want: 45},
		"too few of these":                        {pods: new(intstr.FromInt32(4)), available: 3, want: 30},
		"one of more that the step wants is lost": {pods: new(intstr.FromInt32(8)), available: 7, want: 45},
	} {
		if got := of(test.pods, test.available).LastRequested().Weight; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
