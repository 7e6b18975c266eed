// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

func parse(s *v1alpha1.RolloutSpec) (Settings, error) {
	return Parse(s, v1alpha1.RouterNginx, nil, Metrics{})
}

func specWith(change func(*v1alpha1.RolloutSpec)) *v1alpha1.RolloutSpec {
	s := &v1alpha1.RolloutSpec{Strategy: v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 10, Hold: "2m"}, {Weight: 50}}}}
	change(s)
	return s
}

func TestTheSmallestSpecHasTheDocumentedDefaults(t *testing.T) {
	got, err := parse(specWith(func(*v1alpha1.RolloutSpec) {}))
	if err != nil {
		t.Fatal(err)
	}
	if got.Deadline != 10*time.Minute || got.OnInconclusive != v1alpha1.InconclusiveHold {
		t.Errorf("deadline %s, onInconclusive %s", got.Deadline, got.OnInconclusive)
	}
	if s := got.Steps; len(s) != 2 || s[0].Weight != 10 || s[0].Hold != 2*time.Minute || s[1].Weight != 50 || s[1].Hold != 0 {
		t.Errorf("steps %+v", s)
	}
	if diff := cmp.Diff(judge.Defaults(), got.Judge); diff != "" {
		t.Error(diff)
	}
}

func TestEveryFieldOfTheAnalysisReachesTheJudge(t *testing.T) {
	got, err := parse(specWith(func(s *v1alpha1.RolloutSpec) {
		s.ProgressDeadline = "90s"
		s.Analysis = &v1alpha1.Analysis{
			MaxFalseRollback: "2%", Tolerance: "1.5pp", MinRequests: new(int32(7)), MinSuccessRate: "99%",
			MaxLatency:              []v1alpha1.LatencyLimit{{Quantile: "p99", Max: "500ms"}},
			ConsecutiveFailureLimit: new(int32(2)), OnInconclusive: v1alpha1.InconclusiveRollBack,
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	success, latency := judge.MinSuccessRate(0.99), judge.MaxLatency(0.99, 500*time.Millisecond)
	success.ConsecutiveFailureLimit, latency.ConsecutiveFailureLimit = 2, 2
	want := judge.Defaults()
	want.MaxFalseRollback, want.Tolerance, want.MinRequests, want.Limits = 0.02, 0.015, 7, []judge.Limit{success, latency}
	if diff := cmp.Diff(want, got.Judge); diff != "" {
		t.Error(diff)
	}
	if got.Deadline != 90*time.Second || got.OnInconclusive != v1alpha1.InconclusiveRollBack {
		t.Errorf("deadline %s, onInconclusive %s", got.Deadline, got.OnInconclusive)
	}
}

// What slipped past the schema still must not be guessed.
func TestABadFieldIsNamed(t *testing.T) {
	for field, change := range map[string]func(*v1alpha1.RolloutSpec){
		"spec.progressDeadline":              func(s *v1alpha1.RolloutSpec) { s.ProgressDeadline = "soon" },
		"spec.strategy.steps: is empty":      func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps = nil },
		"spec.strategy.steps[1].hold":        func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps[1].Hold = "-5s" },
		"spec.analysis.maxFalseRollback":     func(s *v1alpha1.RolloutSpec) { s.Analysis = &v1alpha1.Analysis{MaxFalseRollback: "NaN%"} },
		"spec.analysis.tolerance":            func(s *v1alpha1.RolloutSpec) { s.Analysis = &v1alpha1.Analysis{Tolerance: "0.5%"} },
		"spec.analysis.minSuccessRate":       func(s *v1alpha1.RolloutSpec) { s.Analysis = &v1alpha1.Analysis{MinSuccessRate: "101%"} },
		`spec.analysis.minSuccessRate: "0%"`: func(s *v1alpha1.RolloutSpec) { s.Analysis = &v1alpha1.Analysis{MinSuccessRate: "0%"} },
		"spec.analysis.maxLatency[0].max": func(s *v1alpha1.RolloutSpec) {
			s.Analysis = &v1alpha1.Analysis{MaxLatency: []v1alpha1.LatencyLimit{{Quantile: "p99", Max: "x"}}}
		},
		"spec.analysis.maxLatency[0].quantile": func(s *v1alpha1.RolloutSpec) {
			s.Analysis = &v1alpha1.Analysis{MaxLatency: []v1alpha1.LatencyLimit{{Quantile: "max", Max: "1s"}}}
		},
	} {
		t.Run(field, func(t *testing.T) {
			if _, err := parse(specWith(change)); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheCanaryGetsItsShareOfTheReplicasRoundedUp(t *testing.T) {
	for _, c := range []struct{ weight, replicas, want int32 }{
		{0, 4, 1},
		{1, 4, 1},
		{25, 4, 1},
		{26, 4, 2},
		{50, 5, 3},
		{99, 4, 4},
		{100, 4, 4},
		{10, 1, 1},
		{100, 1, 1},
		{50, 0, 0},
		{100, 2147483647, 2147483647},
		{1, 2147483647, 21474837},
	} {
		if got := CanaryReplicas(c.weight, c.replicas); got != c.want {
			t.Errorf("canaryReplicas(%d, %d) = %d, want %d", c.weight, c.replicas, got, c.want)
		}
	}
}
