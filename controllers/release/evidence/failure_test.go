// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// maker stands for a target whose pods Serin makes.
type maker struct{ state.Maker }

func TestACanaryFailsByItsTrafficAndByItsPods(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	began := &v1alpha1.VersionStatus{StartedAt: new(metav1.Now())}
	for name, test := range map[string]struct {
		change func(*state.Snapshot)
		want   string
	}{
		"it is well": {func(*state.Snapshot) {}, ""},
		"the analysis failed": {func(s *state.Snapshot) {
			s.Failing, s.Verdict = true, judge.Result{Reason: judge.ReasonLimitMissed}
		}, string(judge.ReasonLimitMissed)},
		"the analysis failed, and a failure pauses": {func(s *state.Snapshot) {
			s.Failing, s.PauseOnFailure, s.Verdict = true, true, judge.Result{Reason: judge.ReasonLimitMissed}
		}, ""},
		"its ReplicaSet is gone":                    {func(s *state.Snapshot) { s.Canary = nil }, v1alpha1.ReasonCanaryUnavailable},
		"none of its pods is available":             {func(s *state.Snapshot) { s.Canary.Available = 0 }, v1alpha1.ReasonCanaryUnavailable},
		"none is available, and it gets no traffic": {func(s *state.Snapshot) { s.Canary.Available, s.Split.Observed = 0, 0 }, ""},
		"none is available of a workload without pods": {func(s *state.Snapshot) {
			s.Canary.Available, s.Workload.Replicas = 0, 0
		}, ""},
		"none is available behind a user's Service": {func(s *state.Snapshot) {
			s.Canary.Available, s.Workload.Replicas, s.Maker = 0, 0, nil
		}, v1alpha1.ReasonCanaryUnavailable},
		"none is available behind a user's Service before the release": {func(s *state.Snapshot) {
			s.Canary.Available, s.Maker, s.Status.Canary = 0, nil, nil
		}, ""},
		"none is available, nor of stable": {func(s *state.Snapshot) { s.Canary.Available, s.StableDown = 0, true }, ""},
		"none is available, nor of stable, and its ReplicaSet is gone": {
			func(s *state.Snapshot) { s.Canary, s.StableDown = nil, true }, v1alpha1.ReasonCanaryUnavailable,
		},
		"none is available, and stable's are back a moment ago": {func(s *state.Snapshot) {
			s.Canary.Available, s.OutageAt = 0, now.Add(-state.CatchUpTime+time.Second)
		}, ""},
		"none is available, and stable's are back long ago": {func(s *state.Snapshot) {
			s.Canary.Available, s.OutageAt = 0, now.Add(-state.CatchUpTime)
		}, v1alpha1.ReasonCanaryUnavailable},
		"none is available, but ran as far as their nodes reported": {
			func(s *state.Snapshot) { s.Canary.Available, s.CanaryExcused = 0, true }, "",
		},
		"none is available for long, but ran as far as their nodes reported": {func(s *state.Snapshot) {
			s.Canary.Available, s.CanaryExcused = 0, true
			s.Status.Step = &v1alpha1.StepStatus{InterruptedAt: new(metav1.NewMicroTime(now.Add(-state.CatchUpTime)))}
		}, v1alpha1.ReasonCanaryUnavailable},
		"the analysis failed, and no pods are available": {func(s *state.Snapshot) {
			s.Canary.Available, s.StableDown = 0, true
			s.Failing, s.Verdict = true, judge.Result{Reason: judge.ReasonLimitMissed}
		}, string(judge.ReasonLimitMissed)},
	} {
		s := &state.Snapshot{Observation: state.Observation{Now: now}, Facts: state.Facts{Canary: &state.Canary{Available: 1}, Maker: maker{}}}
		s.Split.Presence, s.Split.Observed, s.Workload.Replicas, s.Status.Canary = kit.Present, 10, 4, began
		test.change(s)
		if got := Failure(s).Reason; got != test.want || Failed(s) != (test.want != "") {
			t.Errorf("%s: it fails with %q, want %q", name, got, test.want)
		}
	}
}
