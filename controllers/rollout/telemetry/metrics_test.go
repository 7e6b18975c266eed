// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func registered(t *testing.T, m *Metrics) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	return registry
}

// figure is one series of the exposition, -1 when there is none.
func figure(t *testing.T, g prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetName()+"="+l.GetValue())
			}
			if f.GetName() == name && strings.Join(have, ",") == strings.Join(labels, ",") {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

func status(reason string, s v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}}
	return &s
}

func key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("app-%d", i)}
}

// releasing is a release that began i seconds after midnight, at a weight.
func releasing(i int, weight *int32) *v1alpha1.RolloutStatus {
	s := atStep("b", 1, 0)
	start := after(time.Duration(i) * time.Second)
	s.Canary.StartedAt, s.Weight = &start, &v1alpha1.WeightStatus{Requested: 20, Observed: weight}
	s.Analysis = &v1alpha1.AnalysisStatus{Evidence: "50", Threshold: "100", PromotionEvidence: "2.5", PromotionThreshold: "100"}
	return status(v1alpha1.ReasonHolding, s)
}

func TestSeriesAreBoundedWhateverTheNumberOfRollouts(t *testing.T) {
	const total, inProgress = 5000, 2000
	m := New()
	registry := registered(t, m)
	idle, err := testutil.GatherAndCount(registry)
	if err != nil {
		t.Fatal(err)
	}
	for i := range total {
		s := status(v1alpha1.ReasonStable, v1alpha1.RolloutStatus{})
		if i < inProgress {
			s = releasing(i, new(int32(20)))
		}
		m.Show(key(i), s)
		m.count(transition{
			ended: []v1alpha1.HistoryEntry{{Outcome: strconv.Itoa(i), StartedAt: new(after(0)), EndedAt: after(time.Hour)}},
			cause: fmt.Sprint("cause", i), verdict: fmt.Sprint("verdict", i),
			interventions: []v1alpha1.Intervention{{Action: v1alpha1.ControlAction(strconv.Itoa(i))}},
		})
	}
	full, err := testutil.GatherAndCount(registry)
	if err != nil {
		t.Fatal(err)
	}
	// Four for each release that is shown, and the duration of unknown outcomes.
	if want := idle + 4*maxReleases + 1; full != want || idle > 100 {
		t.Errorf("%d series of 5,000 Rollouts, want %d; %d without any", full, want, idle)
	}
	for name, want := range map[string]float64{"serin_rollout_evidence_ratio": .5, "serin_rollout_promotion_ratio": .025} {
		if got := figure(t, registry, name, "name=app-1", "namespace=team-1"); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]float64{"Stable": total - inProgress, "Holding": inProgress, "Other": 0} {
		if got := figure(t, registry, "serin_rollouts", "state="+name); got != want {
			t.Errorf("%v are %s, want %v", got, name, want)
		}
	}
	if got := figure(t, registry, "serin_rollouts_omitted"); got != inProgress-maxReleases {
		t.Errorf("%v omitted", got)
	}
	if got := figure(t, registry, "serin_rollbacks_total", "cause=Other"); got != total {
		t.Errorf("%v rollbacks of other causes", got)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestAReleaseHasItsSeriesUntilItEnds(t *testing.T) {
	m := New()
	registry := registered(t, m)
	for i := range maxReleases + 1 {
		m.Show(key(i), releasing(i, new(int32(20))))
	}
	first, last := []string{"name=app-0", "namespace=team-0"}, []string{"name=app-500", "namespace=team-0"}
	if got := figure(t, registry, "serin_rollout_step", first...); got != 2 {
		t.Errorf("the oldest release is at step %v", got)
	}
	if got := figure(t, registry, "serin_rollout_weight", last...); got != -1 {
		t.Errorf("the youngest release has weight %v and should be left out", got)
	}
	m.Show(key(0), status(v1alpha1.ReasonStable, v1alpha1.RolloutStatus{}))
	if got := figure(t, registry, "serin_rollout_step", first...); got != -1 {
		t.Errorf("a release that ended is at step %v", got)
	}
	if got := figure(t, registry, "serin_rollout_weight", last...); got != 20 {
		t.Errorf("the youngest release has weight %v after another ended", got)
	}
	m.Forget(key(500))
	if got := figure(t, registry, "serin_rollout_weight", last...); got != -1 {
		t.Errorf("a Rollout that is gone has weight %v", got)
	}
	m.Show(key(1), releasing(1, nil))
	if got := figure(t, registry, "serin_rollout_weight", "name=app-1", "namespace=team-1"); got != -1 {
		t.Errorf("a weight that is not known is %v", got)
	}
}
