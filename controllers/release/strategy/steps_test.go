// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestAStepMayNameItsPods(t *testing.T) {
	for _, c := range []struct {
		pods           string
		replicas, want int32
	}{
		{"", 4, 2}, {"1", 4, 1}, {"0", 4, 1}, {"9", 4, 4}, {"75%", 4, 3}, {"1%", 4, 1}, {"1", 0, 0}, {"many", 4, 2},
	} {
		step := Step{Route: Route{Weight: 50}}
		if c.pods != "" {
			pods := intstr.Parse(c.pods)
			step.Pods = &pods
		}
		if got := step.CanaryPods(c.replicas); got != c.want {
			t.Errorf("%q of %d: %d, want %d", c.pods, c.replicas, got, c.want)
		}
	}
}

func TestWithoutARouterPodsMakeTheShare(t *testing.T) {
	for _, c := range []struct{ weight, replicas, want, share int32 }{
		{0, 4, 0, 0}, {10, 0, 0, 0}, {1, 4, 1, 20}, {20, 4, 1, 20}, {33, 4, 2, 33}, {49, 4, 4, 50}, {50, 4, 4, 50}, {51, 4, 4, 50}, {60, 4, 4, 50}, {100, 4, 4, 50},
	} {
		got := SharedReplicas(c.weight, c.replicas)
		if got != c.want {
			t.Errorf("SharedReplicas(%d, %d) = %d, want %d", c.weight, c.replicas, got, c.want)
		}
		if share := Share(got, c.replicas); share != c.share {
			t.Errorf("Share(%d, %d) = %d, want %d", got, c.replicas, share, c.share)
		}
	}
	if got := Share(2, -1); got != 100 {
		t.Errorf("without stable pods the share is %d", got)
	}
}

func TestRoutesAreComparedByWhoMeetsTheCanary(t *testing.T) {
	half, matched := Route{Weight: 50}, Route{Weight: 50, Matches: []string{"beta"}}
	mirrored := Route{Weight: 50, Mirror: 10}
	for name, c := range map[string]struct {
		a, b                Route
		equal, same, before bool
	}{
		"the same":                {half, half, true, true, false},
		"copies besides":          {half, mirrored, false, true, false},
		"only those who match":    {half, matched, false, false, false},
		"all after who match":     {matched, half, false, false, true},
		"more":                    {Route{Weight: 49}, half, false, false, true},
		"no user, and who match":  {Route{}, matched, false, false, true},
		"no user twice":           {Route{}, Route{}, true, true, false},
		"no weight, with matches": {Route{Matches: []string{"beta"}}, matched, false, false, true},
	} {
		if got := c.a.Equal(c.b); got != c.equal {
			t.Errorf("%s: equal %v", name, got)
		}
		if got := c.a.SameRequests(c.b); got != c.same {
			t.Errorf("%s: the same requests %v", name, got)
		}
		if got := c.a.Below(c.b); got != c.before {
			t.Errorf("%s: below %v", name, got)
		}
	}
}

func TestEvidenceBringsForwardOnlyAStepOfAWeightAmongAll(t *testing.T) {
	for name, c := range map[string]struct {
		step Step
		want bool
	}{
		"half":           {Step{Route: Route{Weight: 50}}, true},
		"the least":      {Step{Route: Route{Weight: 1}}, true},
		"no traffic":     {Step{}, false},
		"below holdout":  {Step{Route: Route{Weight: HoldoutWeight - 1}}, true},
		"like holdout":   {Step{Route: Route{Weight: HoldoutWeight}}, false},
		"who matches":    {Step{Route: Route{Weight: 50, Matches: []string{"beta"}}}, false},
		"a manual gate":  {Step{Route: Route{Weight: 50}, Manual: true}, false},
		"copies besides": {Step{Route: Route{Weight: 50, Mirror: 10}}, true},
	} {
		if got := c.step.CanBeEarly(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOnlyTheLastStepPromotesAheadOfTime(t *testing.T) {
	early := func(s *v1alpha1.RolloutSpec) {
		s.Analysis = &v1alpha1.Analysis{OnConclusive: v1alpha1.ConclusivePromote}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.RolloutSpec)
		want   []float64
	}{
		"two steps":          {early, []float64{0, 0.01}},
		"a gate at the last": {func(s *v1alpha1.RolloutSpec) { early(s); s.Strategy.Steps[1].Until = v1alpha1.UntilManual }, []float64{0, 0}},
		"not wanted":         {func(*v1alpha1.RolloutSpec) {}, []float64{0, 0}},
	} {
		got, err := parse(specWith(c.change))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var bounds []float64
		for _, step := range got.Steps {
			bounds = append(bounds, step.Judge.MaxBadPromotion)
		}
		if diff := cmp.Diff(c.want, bounds); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAStepWithoutTrafficIsHeldOnlyAgainstValues(t *testing.T) {
	value := judge.Limit{Metric: judge.Value, Name: "errors", High: 1, StaleAfter: time.Minute, MinSamples: 1, ConsecutiveFailureLimit: 1}
	metrics := Metrics{Limits: []judge.Limit{value}, Comparisons: []judge.Comparison{{Name: "orders", Weight: 1, Tolerance: 0.1}}}
	spec := specWith(func(s *v1alpha1.RolloutSpec) {
		s.Analysis = &v1alpha1.Analysis{MinSuccessRate: "99%"}
		s.Strategy.Steps[0].Weight = 0
	})
	got, err := Parse(spec, v1alpha1.RouterNginx, nil, metrics)
	if err != nil {
		t.Fatal(err)
	}
	if j := got.Steps[0].Judge; len(j.Limits) != 1 || j.Limits[0].Metric != judge.Value || len(j.Comparisons) != 0 {
		t.Errorf("without traffic: %+v %+v", j.Limits, j.Comparisons)
	}
	if j := got.Steps[1].Judge; len(j.Limits) != 2 || len(j.Comparisons) != 1 {
		t.Errorf("with traffic: %+v %+v", j.Limits, j.Comparisons)
	}
}

func TestBlueGreenIsAPreviewAndThenAllTraffic(t *testing.T) {
	with := func(b *v1alpha1.BlueGreen) *v1alpha1.RolloutSpec {
		return &v1alpha1.RolloutSpec{Strategy: v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: b}}
	}
	for name, c := range map[string]struct {
		blueGreen *v1alpha1.BlueGreen
		manual    bool
		holds     [2]time.Duration
	}{
		"by default": {nil, false, [2]time.Duration{0, 30 * time.Second}},
		"as wanted":  {&v1alpha1.BlueGreen{Until: v1alpha1.UntilManual, Hold: "1m", ScaleDownDelay: "2m"}, true, [2]time.Duration{time.Minute, 2 * time.Minute}},
	} {
		got, err := parse(with(c.blueGreen))
		if err != nil || len(got.Steps) != 2 {
			t.Fatalf("%s: %d steps, %v", name, len(got.Steps), err)
		}
		preview, live := got.Steps[0], got.Steps[1]
		if preview.Weight != 0 || live.Weight != 100 || preview.CanaryPods(4) != 4 || live.CanaryPods(4) != 4 {
			t.Errorf("%s: %+v, then %+v", name, preview, live)
		}
		if preview.Manual != c.manual || live.Manual || preview.Hold != c.holds[0] || live.Hold != c.holds[1] {
			t.Errorf("%s: %+v, then %+v", name, preview, live)
		}
	}
}

func TestAStrategyThatCantBeServedIsRefused(t *testing.T) {
	pods := intstr.FromInt32(0)
	none := func(change func(*v1alpha1.RolloutSpec)) *v1alpha1.RolloutSpec {
		return specWith(func(s *v1alpha1.RolloutSpec) { s.Router = v1alpha1.RouterNone; change(s) })
	}
	many := specWith(func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps = make([]v1alpha1.Step, maxSteps+1) })
	for want, spec := range map[string]*v1alpha1.RolloutSpec{
		"spec.strategy.steps[0].canaryReplicas":   specWith(func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps[0].CanaryReplicas = &pods }),
		"spec.strategy.steps[1].at":               specWith(func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps[1].At = "at noon" }),
		fmt.Sprintf("makes %d steps", maxSteps+1): many,
		"spec.strategy.rollBackOver: the router": none(func(s *v1alpha1.RolloutSpec) {
			s.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, RollBackOver: "1m"}
		}),
		"steps[1]: the router none can neither": none(func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps[1].Mirror = new(int32(1)) }),
		"steps[0]: the router none can neither": none(func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps[0].Matches = []string{"beta"} }),
	} {
		router := v1alpha1.RouterNginx
		if spec.Router != "" {
			router = spec.Router
		}
		got, err := Parse(spec, router, nil, Metrics{})
		if err == nil || !strings.Contains(err.Error(), want) || got.Steps != nil {
			t.Errorf("%s: %d steps, error %v", want, len(got.Steps), err)
		}
	}
	if _, err := Parse(none(func(*v1alpha1.RolloutSpec) {}), v1alpha1.RouterNone, nil, Metrics{}); err != nil {
		t.Errorf("weights alone need no router: %v", err)
	}
	if _, err := parse(specWith(func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps = make([]v1alpha1.Step, maxSteps) })); err != nil {
		t.Errorf("%d steps: %v", maxSteps, err)
	}
	if _, err := Parse(specWith(func(*v1alpha1.RolloutSpec) {}), v1alpha1.RouterNginx, nil, Metrics{Problem: "no template"}); err == nil {
		t.Error("metrics that can't be measured are left out")
	}
}

func TestWithoutARouterTheUsersMetricsSayHowStepsAreJudged(t *testing.T) {
	value := judge.ValueBetween("errors", 0, 10)
	spec := specWith(func(s *v1alpha1.RolloutSpec) {
		s.Router, s.Analysis = v1alpha1.RouterNone, &v1alpha1.Analysis{MinSuccessRate: "99%"}
		s.Strategy.Steps = []v1alpha1.Step{{Weight: 0}, {Weight: 20}}
	})
	counted := Metrics{Limits: []judge.Limit{value}, StaleAfter: 90 * time.Second, Tolerance: 0.02}
	got, err := Parse(spec, v1alpha1.RouterNone, nil, counted)
	if err != nil {
		t.Fatal(err)
	}
	preview, shared := got.Steps[0].Judge, got.Steps[1].Judge
	if got.Unmeasured || !preview.ValuesOnly || len(preview.Limits) != 1 {
		t.Errorf("before the canary is called: %+v", preview)
	}
	if shared.ValuesOnly || shared.Shares || shared.StaleAfter != counted.StaleAfter || shared.Tolerance != counted.Tolerance || len(shared.Limits) != 2 {
		t.Errorf("when it is called: %+v", shared)
	}
	got, err = Parse(spec, v1alpha1.RouterNone, nil, Metrics{Limits: []judge.Limit{value}, ValuesOnly: true})
	if err != nil || !got.Steps[1].Judge.ValuesOnly {
		t.Errorf("numbers alone: %+v, %v", got.Steps, err)
	}
	spec.Analysis = nil
	if got, err = Parse(spec, v1alpha1.RouterNone, nil, Metrics{}); err != nil || !got.Unmeasured {
		t.Errorf("without an analysis: %+v, %v", got, err)
	}
}
