// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

func init() { scenarios = append(scenarios, earlyScenarios...) }

// early is a world whose last step is long, and cut short by evidence.
func early(w *world) {
	w.rps = 4000
	w.ro.Spec.Strategy.Steps = []v1alpha1.Step{{Weight: 10, Hold: "30s"}, {Weight: 50, Hold: "10m"}}
	w.ro.Spec.Analysis = &v1alpha1.Analysis{OnConclusive: v1alpha1.ConclusivePromote}
	w.ready()
	w.setTemplate("v2")
}

func (w *world) observes(weight int32) func() bool {
	return func() bool { return w.split != nil && w.split.observed == weight }
}

var earlyScenarios = []scenario{
	{"a canary that proves itself is promoted ahead of time", func(w *world) {
		early(w)
		w.until("weight 95", w.observes(95))
		w.ready()
	}},
	{"a defect that begins after an early promotion is found", func(w *world) {
		early(w)
		w.until("weight 95", w.observes(95))
		w.failures["v2"] = 5
		w.until("rolled back", w.rolledBack)
	}},
	{"a freeze lets no canary be promoted ahead of time", func(w *world) {
		early(w)
		w.until("weight 50", w.observes(50))
		w.freezes = []v1alpha1.Freeze{{Spec: v1alpha1.FreezeSpec{Reason: "audit"}}}
		w.run(120)
		w.freezes = nil
		w.ready()
	}},
	{"early promotion is switched off in the middle of one", func(w *world) {
		early(w)
		w.until("weight 95", w.observes(95))
		w.ro.Spec.Analysis.OnConclusive = v1alpha1.ConclusiveHold
		w.until("weight 50", w.observes(50))
		w.ready()
	}},
	{"the last step becomes lower after an early promotion", func(w *world) {
		early(w)
		w.until("weight 95", w.observes(95))
		w.ro.Spec.Strategy.Steps[1].Weight = 20
		w.until("weight 20", w.observes(20))
		w.ready()
	}},
	{"a hook is called once before an early promotion", func(w *world) {
		w.ro.Spec.Hooks = []v1alpha1.Hook{{Name: "change", When: v1alpha1.HookBeforePromotion, Timeout: "10m"}}
		early(w)
		w.until("asked", func() bool { return len(w.asked) > 0 })
		for id := range w.asked {
			w.answers[id] = state.Answer{Final: true, Taken: true}
		}
		w.until("weight 95", w.observes(95))
		w.ready()
	}},
}

func TestACanaryIsPromotedAheadOfTimeOnlyWhereTheSpecAndTheLastStepAllowIt(t *testing.T) {
	ask := &v1alpha1.Analysis{OnConclusive: v1alpha1.ConclusivePromote}
	for _, test := range []struct {
		name     string
		analysis *v1alpha1.Analysis
		last     v1alpha1.Step
		early    bool
	}{
		{name: "asked", analysis: ask, last: v1alpha1.Step{Weight: 50, Hold: "5m"}, early: true},
		{name: "not asked", last: v1alpha1.Step{Weight: 50, Hold: "5m"}},
		{name: "a gate", analysis: ask, last: v1alpha1.Step{Weight: 50, Hold: "5m", Until: v1alpha1.UntilManual}},
		{name: "nearly everything anyway", analysis: ask, last: v1alpha1.Step{Weight: 95, Hold: "5m"}},
		{name: "nothing to compare", analysis: ask, last: v1alpha1.Step{Weight: 0, Hold: "5m"}},
		{name: "only those who match", analysis: ask, last: v1alpha1.Step{Weight: 50, Hold: "5m", Matches: []string{"testers"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.rps = 4000
			w.ro.Spec.Analysis = test.analysis
			w.ro.Spec.Strategy.Steps = []v1alpha1.Step{{Weight: 10, Hold: "30s"}, test.last}
			w.ready()
			w.setTemplate("v2")
			w.run(250)
			if got := strings.Contains(strings.Join(w.log, "\n"), "ahead of time"); got != test.early {
				t.Errorf("early: %v, want %v\n%s", got, test.early, w.tail())
			}
		})
	}
}

func TestWhatAReleaseTeachesAboutStableIsKeptForTheNext(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.run(2)
	w.ready()
	first := w.ro.Status.Dispersion
	if first == "" {
		t.Fatal("nothing was kept")
	}
	w.setTemplate("v3")
	w.run(2)
	w.ready()
	if w.ro.Status.Dispersion == first {
		t.Error("the second release has taught nothing")
	}
	w.ro.Status.Dispersion = "garbage"
	w.setTemplate("v4")
	w.run(2)
	w.ready()
}
