// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// stateOf names the state of a Rollout: what rules of other tools may go by.
func stateOf(ro *v1alpha1.Rollout) string {
	c := ro.Status.Conditions
	ready := meta.FindStatusCondition(c, v1alpha1.ConditionReady)
	return fmt.Sprintf("Ready=%s %s Stalled=%t paused=%t deleting=%t", ready.Status, ready.Reason,
		meta.IsStatusConditionTrue(c, v1alpha1.ConditionStalled), ro.Spec.Paused, ro.DeletionTimestamp != nil)
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
	record := func(ro *v1alpha1.Rollout) {
		name := stateOf(ro)
		if states[name] != "" {
			return
		}
		ro = ro.DeepCopy()
		ro.APIVersion, ro.Kind = v1alpha1.GroupVersion.String(), "Rollout"
		text, err := yaml.Marshal(ro)
		if err != nil {
			t.Fatal(err)
		}
		states[name] = "# " + name + "\n" + string(text)
	}
	for _, s := range scenarios {
		w := newWorld(t)
		w.report = record
		s.tell(w)
	}
	for _, name := range slices.Sorted(maps.Keys(obstacles)) {
		w := hindered(t, name)
		record(w.ro)
	}
	for _, change := range unservable {
		w := newWorld(t)
		w.ready()
		w.report = record
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
	file, got := filepath.Join("testdata", "states.yaml"), strings.Join(all, "---\n")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the recorded states changed; run with -update (-want +got):\n%s", diff)
	}
}
