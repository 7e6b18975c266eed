// SPDX-License-Identifier: Apache-2.0

package servicepair

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

func TestOneReadyPodBehindTheCanarysServiceCanAnswer(t *testing.T) {
	for ready, want := range map[int32]bool{0: false, 1: true, 2: true} {
		s := state.Snapshot{Observation: state.Observation{Rollout: &v1alpha1.Rollout{}, Pair: state.Pair{CanaryRevision: "v2", CanaryReady: ready}}}
		s.Rollout.Spec.Services = &v1alpha1.ServicePair{Stable: "web-v1", Canary: "web-v2"}
		s.Facts = Target{}.Observe(&s)
		if got := s.Ready(1); got != want {
			t.Errorf("with %d ready pods: %v", ready, got)
		}
	}
}

// lost is a Rollout without a record: made ten minutes ago, with an earlier split of its name.
func lost(change func(*state.Snapshot)) *state.Snapshot {
	s := &state.Snapshot{Observation: state.Observation{
		Now: time.Unix(640, 0), Rollout: &v1alpha1.Rollout{},
		Pair:  state.Pair{StableRevision: "v1", StableReady: 1, CanaryRevision: "v2", CanaryReady: 1},
		Split: state.Split{Split: kit.Split{Presence: kit.Present}, Inherited: true, Requested: strategy.Route{Weight: 60}},
	}}
	s.Rollout.CreationTimestamp, s.Rollout.Finalizers = metav1.Unix(40, 0), []string{v1alpha1.Finalizer}
	s.Rollout.Spec.Services = &v1alpha1.ServicePair{Stable: "web-v1", Canary: "web-v2"}
	change(s)
	return s
}

func TestTheServiceThatHasTheTrafficIsStableWithoutARecord(t *testing.T) {
	all := strategy.Route{Weight: strategy.FullWeight}
	absent := func(s *state.Snapshot) { s.Split = state.Split{Split: kit.Split{Presence: kit.Absent}} }
	for name, test := range map[string]struct {
		change func(*state.Snapshot)
		want   string
	}{
		"in the middle of a release":           {func(*state.Snapshot) {}, "web-v1"},
		"promoted, or in a step of 100 %":      {func(s *state.Snapshot) { s.Split.Requested = all }, "web-v2"},
		"a split that is no earlier one's":     {func(s *state.Snapshot) { s.Split.Requested, s.Split.Inherited = all, false }, "web-v1"},
		"the old version was scaled to zero":   {func(s *state.Snapshot) { s.Pair.StableRevision = "" }, "web-v2"},
		"both were":                            {func(s *state.Snapshot) { s.Pair.StableRevision, s.Pair.CanaryRevision = "", "" }, "web-v1"},
		"the new version's Service is missing": {func(s *state.Snapshot) { s.Pair.StableRevision, s.Pair.Missing = "", "web-v2" }, "web-v1"},
		"without a split, after ten minutes":   {absent, "web-v1"},
		"without a split, a second earlier":    {func(s *state.Snapshot) { absent(s); s.Now = time.Unix(639, 0) }, ""},
		"a new Rollout": {func(s *state.Snapshot) {
			absent(s)
			s.Now, s.Rollout.Finalizers = time.Unix(41, 0), nil
		}, "web-v1"},
		"a new Rollout, before its stable pods are made": {func(s *state.Snapshot) {
			absent(s)
			s.Rollout.Finalizers, s.Pair.StableRevision = nil, ""
		}, "web-v1"},
	} {
		got := stableOf(lost(test.change))
		if (got == nil) != (test.want == "") || got != nil && got.Service != test.want {
			t.Errorf("%s: %+v, want %q", name, got, test.want)
		}
	}
}
