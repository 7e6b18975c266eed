// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// stateOf names the state of a Rollout: what rules of other tools may go by.
func stateOf(ro *v1alpha1.Rollout) string {
	s := &ro.Status
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	name := fmt.Sprintf("Ready=%s %s", ready.Status, ready.Reason)
	for _, mark := range []struct {
		name string
		is   bool
	}{
		{"stalled", meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled)},
		{"paused", ro.Spec.Paused},
		{"deleting", ro.DeletionTimestamp != nil},
		{"begun", s.Canary != nil && s.Canary.StartedAt != nil},
	} {
		if mark.is {
			name += " " + mark.name
		}
	}
	if s.Decision != nil && s.Canary != nil && s.Decision.Revision == s.Canary.Revision {
		name += fmt.Sprintf(" %s handedOver=%t", s.Decision.Action, s.Decision.HandedOver)
	}
	return name
}

// possible are the user actions that are applied now.
func (w *world) possible() []string {
	var out []string
	for _, action := range []v1alpha1.ControlAction{
		v1alpha1.ControlAbort, v1alpha1.ControlPromote, v1alpha1.ControlPromoteFull, v1alpha1.ControlRetry, v1alpha1.ControlSkip,
	} {
		o := w.observe()
		if w.behind != nil {
			o = w.behind(o)
		}
		c := o.Rollout.Status.Canary
		if c == nil {
			return nil
		}
		o.Rollout = o.Rollout.DeepCopy()
		o.Rollout.Spec.Control = &v1alpha1.Control{Revision: c.Revision, Action: action, Reason: "possible?"}
		if seen := Decide(o).Status.Control; seen != nil && seen.Control.Reason == "possible?" && seen.Ignored == "" {
			out = append(out, string(action))
		}
	}
	return out
}

// unservable are observations of a Rollout that no scenario has.
var unservable = []func(*state.Observation){
	func(o *state.Observation) { o.Unreadable = "the Service can't be read" },
	func(o *state.Observation) { o.Workload = state.Workload{Presence: kit.Absent} },
	func(o *state.Observation) { o.Service = state.Service{Presence: kit.Absent} },
	func(o *state.Observation) { o.Configuration.Problem = "this operator has no policy for it" },
}

// TestRecordedStates keeps a Rollout of each state that the scenarios reach: the health
// rules for Argo CD and Flux are tested on them.
func TestRecordedStates(t *testing.T) {
	states := map[string]string{}
	record := func(w *world) {
		name := stateOf(w.ro)
		if states[name] != "" {
			return
		}
		ro := w.ro.DeepCopy()
		ro.Status.History, ro.Status.Dispersion = nil, "" // which no rule goes by
		if ro.Status.Analysis != nil {
			ro.Status.Analysis.State = ""
		}
		ro.APIVersion, ro.Kind = v1alpha1.GroupVersion.String(), "Rollout"
		text, err := yaml.Marshal(ro)
		if err != nil {
			t.Fatal(err)
		}
		states[name] = fmt.Sprintf("# %s\n# possible: %s\n%s", name, strings.Join(w.possible(), " "), text)
	}
	for _, s := range scenarios {
		w := newWorld(t)
		w.report = func() { record(w) }
		s.tell(w)
	}
	for _, name := range slices.Sorted(maps.Keys(obstacles)) {
		record(hindered(t, name))
	}
	for _, change := range unservable {
		w := newWorld(t)
		w.ready()
		w.report = func() { record(w) }
		w.behind = func(o state.Observation) state.Observation {
			change(&o)
			return o
		}
		w.run(2)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(states)) {
		all = append(all, states[name])
	}
	golden.Check(t, filepath.Join("testdata", "states.yaml"), strings.Join(all, "---\n"))
}
