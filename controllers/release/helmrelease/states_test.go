// SPDX-License-Identifier: Apache-2.0

package helmrelease

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
)

// stateOf names the state of a CanaryRelease: what rules of other tools may go by.
func stateOf(cr *v1alpha1.CanaryRelease) string {
	c := cr.Status.Conditions
	ready := meta.FindStatusCondition(c, v1alpha1.ConditionReady)
	return fmt.Sprintf("Ready=%s %s Stalled=%t transition=%q deleting=%t", ready.Status, ready.Reason,
		meta.IsStatusConditionTrue(c, v1alpha1.ConditionStalled), cr.Spec.Transition, cr.DeletionTimestamp != nil)
}

// TestRecordedStates keeps a CanaryRelease of each state that the scenarios reach: the
// health rules for Argo CD and Flux are tested on them.
func TestRecordedStates(t *testing.T) {
	states := map[string]string{}
	for _, s := range scenarios {
		w := newWorld(t)
		w.report = func(cr *v1alpha1.CanaryRelease) {
			name := stateOf(cr)
			if states[name] != "" {
				return
			}
			cr = cr.DeepCopy()
			cr.APIVersion, cr.Kind = v1alpha1.GroupVersion.String(), "CanaryRelease"
			text, err := yaml.Marshal(cr)
			if err != nil {
				t.Fatal(err)
			}
			states[name] = "# " + name + "\n" + string(text)
		}
		s.run(w)
		w.end(100)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(states)) {
		all = append(all, states[name])
	}
	golden.Check(t, filepath.Join("testdata", "states.yaml"), strings.Join(all, "---\n"))
}
