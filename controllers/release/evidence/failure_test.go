// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// maker stands for a target whose pods Serin makes.
type maker struct{ state.Maker }

func TestACanaryFailsByItsTrafficAndByItsPods(t *testing.T) {
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
	} {
		s := &state.Snapshot{Facts: state.Facts{Canary: &state.Canary{Available: 1}, Maker: maker{}}}
		s.Split.Presence, s.Split.Observed, s.Workload.Replicas, s.Status.Canary = kit.Present, 10, 4, began
		test.change(s)
		if got := Failure(s).Reason; got != test.want || Failed(s) != (test.want != "") {
			t.Errorf("%s: it fails with %q, want %q", name, got, test.want)
		}
	}
}
