// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestAStatusWhoseWriteWasPutOffIsGoneOnWith(t *testing.T) {
	stored := v1alpha1.RolloutStatus{ObservedGeneration: 1}
	record := v1alpha1.RolloutStatus{ObservedGeneration: 1, Step: &v1alpha1.StepStatus{Summary: "1/2"}}
	read := func() *v1alpha1.Rollout {
		return &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website"}, Status: *stored.DeepCopy()}
	}
	key := types.NamespacedName{Namespace: "shop", Name: "website"}
	for name, test := range map[string]struct {
		change func(*memory, *v1alpha1.Rollout)
		want   bool
	}{
		"it is read again":                 {func(*memory, *v1alpha1.Rollout) {}, true},
		"its spec was changed":             {func(_ *memory, ro *v1alpha1.Rollout) { ro.Generation, ro.ResourceVersion = 2, "2" }, true},
		"another status is there":          {func(_ *memory, ro *v1alpha1.Rollout) { ro.Status.ObservedGeneration = 2 }, false},
		"it was written":                   {func(m *memory, _ *v1alpha1.Rollout) { m.putOff(key, nil, nil) }, false},
		"the Rollout was gone":             {func(m *memory, _ *v1alpha1.Rollout) { m.forget(key) }, false},
		"the operator restarted meanwhile": {func(m *memory, _ *v1alpha1.Rollout) { m.of = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var m memory
			m.putOff(key, stored.DeepCopy(), record.DeepCopy())
			ro := read()
			test.change(&m, ro)
			before := ro.Status.DeepCopy()
			if got := m.recall(ro); got.ObservedGeneration != before.ObservedGeneration || got.Step != nil {
				t.Errorf("stored is %+v", got)
			}
			if got := ro.Status.Step != nil; got != test.want {
				t.Errorf("it goes on with what was put off: %v", got)
			}
		})
	}
}
