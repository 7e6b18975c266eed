// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// losesStable is kubectl delete replicaset.
func (w *world) losesStable() {
	revision := w.ro.Status.Stable.Revision
	w.rss = slices.DeleteFunc(w.rss, func(rs *replicaSet) bool { return rs.revision == revision })
	delete(w.served, templateOf(revision)) // its pods may be made anew
	w.lost, w.answered, w.dirty = true, false, true
	w.say("user: deletes ReplicaSet website-%s", revision)
}

func templateOf(revision string) string { return revision[1:] }

func init() {
	inTheMiddle := func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(50)
		w.losesStable()
		w.untilReason(v1alpha1.ReasonStableLost)
		w.run(1200)
	}
	scenarios = append(scenarios,
		scenario{"another actor deletes stable's ReplicaSet, and a user promotes the canary", func(w *world) {
			inTheMiddle(w)
			w.control(v1alpha1.ControlAbort, "sv2") // there is nothing to go back to
			w.run(60)
			w.control(v1alpha1.ControlPromoteFull, "sv2")
			w.ready()
		}},
		scenario{"another actor deletes stable's ReplicaSet, and the template is set back", func(w *world) {
			inTheMiddle(w)
			w.setTemplate("v1")
			w.ready()
		}},
		scenario{"another actor deletes stable's ReplicaSet, and then the Rollout", func(w *world) {
			inTheMiddle(w)
			w.remove()
			w.until("gone", func() bool { return w.gone })
			w.run(10)
		}},
		scenario{"another actor deletes stable's ReplicaSet, and an older version comes up in its place", func(w *world) {
			w.ready()
			w.setTemplate("v2")
			w.run(2)
			w.ready()
			w.setTemplate("v3")
			w.untilWeight(50)
			w.losesStable()
			w.until("another one is stable", func() bool { return w.ro.Status.Stable.Revision == "kv1" })
			w.lost = false
			w.ready()
		}},
		scenario{"another actor deletes stable's ReplicaSet after a rollback", func(w *world) {
			w.failures["v2"] = 5
			w.ready()
			w.setTemplate("v2")
			w.until("rolled back", w.rolledBack)
			w.losesStable()
			w.untilReason(v1alpha1.ReasonStableLost)
			w.run(60)
			w.setTemplate("v1")
			w.ready()
		}},
	)
}

// Whatever comes after the loss of stable, the canary's pods are all that answers.
func TestTheLastCopyIsNeverTakenAway(t *testing.T) {
	for name, then := range map[string]func(*world){
		"it fails":                  func(w *world) { w.failures["v2"] = 50 },
		"a user aborts":             func(w *world) { w.control(v1alpha1.ControlAbort, "sv2") },
		"the spec becomes invalid":  obstacles["a time zone that there is not"].come,
		"the router is not offered": obstacles["a router that is not offered"].come,
		"a hook refuses the promotion": func(w *world) {
			w.edit("a hook", func(s *v1alpha1.RolloutSpec) {
				s.Hooks = []v1alpha1.Hook{{Name: "approval", When: v1alpha1.HookBeforePromotion}}
			})
			w.control(v1alpha1.ControlPromoteFull, "sv2")
			w.run(5)
			w.answer(state.Answer{Final: true})
		},
		"the Rollout is deleted": func(w *world) { w.remove() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready()
			w.setTemplate("v2")
			w.untilWeight(50)
			w.losesStable()
			w.run(2)
			then(w)
			for range 1200 {
				w.tick()
				if w.byRevision("sv2") == nil || w.byRevision("sv2").available < 2 {
					t.Fatalf("its pods went\n%s", w.tail())
				}
			}
		})
	}
}
