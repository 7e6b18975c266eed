// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// mishap is something that others do to a delegated CanaryRelease, or to its Rollout.
type mishap struct {
	name string
	do   func(w *world, r *rand.Rand)
}

var mishaps = []mishap{
	{"other content", func(w *world, r *rand.Rand) { w.cr.content = fmt.Sprintf("v%d", 2+r.IntN(4)) }},
	{"deprecated", func(w *world, _ *rand.Rand) { w.cr.byUser = v1alpha1.CanaryTransitionDeprecated }},
	{"adopted", func(w *world, _ *rand.Rand) { w.cr.byUser = v1alpha1.CanaryTransitionAdopted }},
	{"deleted", func(w *world, _ *rand.Rand) { w.cr.deleting = true }},
	{"no pods", func(w *world, _ *rand.Rand) { w.cr.broken = true }},
	{"pods again", func(w *world, _ *rand.Rand) { w.cr.broken = false }},
	{"upgrade fails", func(w *world, _ *rand.Rand) { w.cr.stuck = w.cr.decision == nil }},
	{"another weight", func(w *world, r *rand.Rand) { w.cr.delegation.Weight, w.tampered = int32(r.IntN(101)), true }},
	{"no consent", func(w *world, _ *rand.Rand) { w.cr.names = "" }},
	{"consent", func(w *world, _ *rand.Rand) { w.cr.names = w.ro.Name }},
	{"a mistake", func(w *world, _ *rand.Rand) {
		w.edit("router", func(s *v1alpha1.RolloutSpec) { s.Router = v1alpha1.RouterSMI })
	}},
	{"no mistake", func(w *world, _ *rand.Rand) { w.edit("router", func(s *v1alpha1.RolloutSpec) { s.Router = "" }) }},
	{"a decision", func(w *world, r *rand.Rand) {
		actions := []v1alpha1.ControlAction{v1alpha1.ControlAbort, v1alpha1.ControlPromoteFull, v1alpha1.ControlSkip, v1alpha1.ControlRetry}
		w.control(actions[r.IntN(len(actions))], w.cr.uid+"-"+w.cr.content)
	}},
	{"paused", func(w *world, r *rand.Rand) {
		w.edit("paused", func(s *v1alpha1.RolloutSpec) { s.Paused = r.IntN(2) == 0 })
	}},
}

// befall does something to the world now and then.
func (w *world) befall(r *rand.Rand, seconds int) {
	w.t.Helper()
	for i := range seconds {
		w.tick()
		over := w.cr == nil || w.cr.decision != nil && w.cr.decision.EndedAt != nil && !w.cr.deleting
		switch {
		case over && r.IntN(20) == 0:
			w.tries(fmt.Sprint("n", i), fmt.Sprintf("v%d", 2+r.IntN(4)))
		case w.cr != nil && r.IntN(25) == 0:
			m := mishaps[r.IntN(len(mishaps))]
			w.say("others: %s", m.name)
			m.do(w, r)
			w.dirty = true
		}
	}
}

// fix takes everything away that keeps a release from ending.
func (w *world) fix() {
	w.edit("fixed", func(s *v1alpha1.RolloutSpec) { s.Router, s.Paused = "", false })
	if w.cr != nil {
		w.cr.broken, w.cr.stuck, w.cr.names = false, false, w.ro.Name
	}
	w.say("everything is fixed")
}

// TestADelegatedReleaseEndsWellWhateverHappens: after finitely many mishaps it is promoted or
// rolled back, and then silent; what must always hold is checked after every move.
func TestADelegatedReleaseEndsWellWhateverHappens(t *testing.T) {
	seeds := 400
	if testing.Short() {
		seeds = 50
	}
	ends := map[string]int{}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 45))
		w := newWorld(t)
		w.watch = seed%20 == 0
		w.ro.Spec.ProgressDeadline = "60s"
		w.routerLag, w.crashAt = r.IntN(4), r.IntN(30)
		w.failures["v3"] = 8
		w.delegated()
		w.tries("a", "v2")
		w.befall(r, 400)
		w.fix()
		if r.IntN(4) == 0 {
			w.remove()
			w.until(fmt.Sprintf("gone, seed %d", seed), func() bool { return w.gone })
			if w.cr != nil && w.cr.held && w.cr.names == w.ro.Name {
				t.Fatalf("seed %d: something is left of what it decided\n%s", seed, w.tail())
			}
			ends["gone"]++
			continue
		}
		w.until(fmt.Sprintf("at rest, seed %d", seed), func() bool {
			return w.is(v1alpha1.ReasonRolledBack) || w.is(v1alpha1.ReasonStable)
		})
		w.run(200)
		w.checkQuiet()
		for _, h := range w.ro.Status.History {
			ends[h.Outcome]++
		}
	}
	for _, outcome := range []string{"gone", v1alpha1.OutcomePromoted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded} {
		if ends[outcome] == 0 {
			t.Errorf("no seed ends as %s: %v", outcome, ends)
		}
	}
	t.Logf("%v", ends)
}
