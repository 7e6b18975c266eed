// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"testing"

	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// The Deployment controller scales both versions in proportion when it adopts a canary
// that is not exactly of its scale.
func TestACanaryIsHandedOverOnlyWithExactlyItsPods(t *testing.T) {
	releases := func(o state.Observation) bool {
		return slices.ContainsFunc(Decide(o).Actions, func(a kit.Action) bool { _, ok := a.(kit.ReleaseCanary); return ok })
	}
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.until("all traffic asked for", func() bool { return w.split != nil && w.split.requested.Weight == strategy.FullWeight })
	due := w.observe()
	due.Split.Programmed, due.Split.Observed = true, strategy.FullWeight
	if !releases(due) {
		t.Fatalf("it is not due\n%s", w.tail())
	}
	canary := func(o *state.Observation) *kit.ReplicaSet {
		i := slices.IndexFunc(o.ReplicaSets, func(r kit.ReplicaSet) bool { return r.Owner == kit.OwnerSerin && r.Current })
		return &o.ReplicaSets[i]
	}
	for name, change := range map[string]func(*kit.ReplicaSet){
		"one pod too many, not available": func(r *kit.ReplicaSet) { r.Existing++ },
		"one pod too many, available":     func(r *kit.ReplicaSet) { r.Existing++; r.Available++ },
		"one pod too few":                 func(r *kit.ReplicaSet) { r.Existing--; r.Available-- },
		"one pod that is not available":   func(r *kit.ReplicaSet) { r.Available-- },
		"one pod more is wanted":          func(r *kit.ReplicaSet) { r.Replicas++ },
		"it has another scale on record":  func(r *kit.ReplicaSet) { r.Desired++ },
	} {
		o := due
		o.ReplicaSets = slices.Clone(due.ReplicaSets)
		change(canary(&o))
		if releases(o) {
			t.Errorf("%s: it is handed over", name)
		}
	}
}
