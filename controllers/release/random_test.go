// SPDX-License-Identifier: Apache-2.0

package release

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// histories is how many random histories are played; make soak plays 10,000.
var histories = flag.Int("histories", 1000, "how many random histories of a release are played")

// TestRandomHistoriesEndWellAndStaySo lets users, pods, the router, endpoints,
// other actors and the operator's process do what they like, in seeded order,
// checks the invariants at every tick, and then wants everything to come to rest
// (L1, L4) or, where the Rollout was deleted, to be restored (L3).
func TestRandomHistoriesEndWellAndStaySo(t *testing.T) {
	n := *histories
	if testing.Short() {
		n /= 10
	}
	const parts = 100
	for part := range parts {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			t.Parallel()
			seed := part
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			for ; seed < n; seed += parts {
				live(t, uint64(seed))
			}
		})
	}
}

func live(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	w.watch = seed%5 == 0 // to watch all would take twice the time
	w.draw(r)
	w.ready()
	for range 4 + r.IntN(8) {
		w.run(1 + r.IntN(60))
		w.disturb(r)
	}
	if r.IntN(8) == 0 {
		w.remove()
	}
	w.comeToRest()
	w.checkQuiet()
}

// draw draws the circumstances of a history.
func (w *world) draw(r *rand.Rand) {
	w.guard = r.IntN(2) == 0
	w.podDelay, w.routerLag = r.IntN(5), r.IntN(4)
	w.dep.replicas = int32(1 + r.IntN(9))
	if bad := r.IntN(6); bad > 0 {
		w.failures[fmt.Sprint("v", bad)] = int64(5 + r.IntN(60))
	}
	if never := r.IntN(6); never > 1 {
		w.broken[fmt.Sprint("v", never)] = true
	}
	spec := &w.ro.Spec
	spec.ProgressDeadline = "90s"
	w.drawStrategy(r)
	if r.IntN(6) == 0 {
		spec.Router = v1alpha1.RouterNone
		if spec.Strategy.Type != v1alpha1.StrategyBlueGreen {
			spec.Strategy.Steps = drawSteps(r, false)
		}
	}
	if r.IntN(4) == 0 && (spec.Router != v1alpha1.RouterNone || w.byReplicas()) {
		spec.Strategy.RollBackOver = "40s"
	}
	if r.IntN(5) == 0 {
		spec.Strategy.OnFailure = v1alpha1.OnFailurePause
	}
	if r.IntN(4) == 0 {
		spec.RollbackWindow = &v1alpha1.RollbackWindow{Revisions: int32(1 + r.IntN(3))}
	}
	if r.IntN(5) == 0 {
		on := []v1alpha1.HookTime{v1alpha1.HookBeforeRelease, v1alpha1.HookBeforeStep, v1alpha1.HookGate, v1alpha1.HookBeforePromotion, v1alpha1.HookAfterRelease}
		spec.Hooks = []v1alpha1.Hook{{Name: "hook", When: on[r.IntN(len(on))], Timeout: "10m"}}
	}
	if r.IntN(5) == 0 {
		spec.Notifications = []v1alpha1.Notification{{Name: "chat"}}
	}
}

// drawStrategy draws a strategy that every router can serve.
func (w *world) drawStrategy(r *rand.Rand) {
	s := &w.ro.Spec.Strategy
	switch r.IntN(6) {
	case 0:
		*s = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Hold: "10s", ScaleDownDelay: "30s"}}
		if r.IntN(3) > 0 {
			w.previews()
		}
	case 1:
		*s = v1alpha1.Strategy{Ramp: &v1alpha1.Ramp{From: int32(1 + r.IntN(20)), To: int32(20 + r.IntN(80)), Every: "15s", By: new(int32(5 + r.IntN(40)))}}
	default:
		*s = v1alpha1.Strategy{Steps: drawSteps(r, true)}
	}
}

func drawSteps(r *rand.Rand, rich bool) []v1alpha1.Step {
	var steps []v1alpha1.Step
	weight := int32(0)
	for range 1 + r.IntN(4) {
		weight = min(100, weight+int32(r.IntN(45)))
		s := v1alpha1.Step{Weight: weight, Hold: v1alpha1.Duration(fmt.Sprintf("%ds", r.IntN(40)))}
		if r.IntN(6) == 0 {
			s.Until = v1alpha1.UntilManual
		}
		if r.IntN(6) == 0 {
			pods := intstr.FromInt32(int32(1 + r.IntN(4)))
			s.CanaryReplicas = &pods
		}
		steps = append(steps, s)
	}
	if rich && r.IntN(5) == 0 {
		first := v1alpha1.Step{Weight: int32(50 + r.IntN(51)), Matches: []string{"testers"}, Hold: "10s"}
		steps = slices.Insert(steps, 0, first)
	}
	if rich && r.IntN(6) == 0 {
		steps[len(steps)-1].Mirror = new(int32(10))
	}
	return steps
}

// disturb does one thing that happens in clusters.
func (w *world) disturb(r *rand.Rand) {
	w.dirty = true
	switch r.IntN(17) {
	case 0, 1, 2:
		w.setTemplate(fmt.Sprint("v", 1+r.IntN(5)))
	case 3:
		w.dep.replicas = int32(1 + r.IntN(9))
		w.say("user: scales to %d", w.dep.replicas)
	case 4, 5:
		w.crashAt = w.acted + 1 + r.IntN(4)
	case 6:
		w.ro.Spec.Paused = !w.ro.Spec.Paused
		w.say("user: paused %v", w.ro.Spec.Paused)
	case 7:
		w.freeze([]string{"", "audit"}[r.IntN(2)])
	case 8, 9, 10:
		w.decide(r)
	case 11:
		if len(w.ro.Spec.Strategy.Steps) > 0 {
			w.edit("other steps", func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps = drawSteps(r, w.routerName() != v1alpha1.RouterNone) })
		}
	case 12:
		w.answer(state.Answer{Final: r.IntN(3) > 0, Taken: r.IntN(4) > 0})
	case 13:
		w.dep.replicas = 0
		w.say("user: scales to 0")
	case 14:
		w.meddle(r)
	case 15:
		w.rps = int64(r.IntN(2) * 200)
	case 16:
		w.unoffered = !w.unoffered
		w.say("operator: offers the router %v", !w.unoffered)
	}
}

// decide is what a user decides, mostly about what is being released.
func (w *world) decide(r *rand.Rand) {
	actions := []v1alpha1.ControlAction{
		v1alpha1.ControlPromote, v1alpha1.ControlSkip, v1alpha1.ControlPromoteFull, v1alpha1.ControlAbort, v1alpha1.ControlRetry,
	}
	revision := fmt.Sprint("sv", 1+r.IntN(5))
	if c := w.ro.Status.Canary; c != nil && r.IntN(4) > 0 {
		revision = c.Revision
	}
	w.control(actions[r.IntN(len(actions))], revision)
	if r.IntN(2) == 0 {
		w.ro.Spec.Control.StepIndex = new(int32(r.IntN(4)))
	}
}

// meddle is what users and other controllers should not do.
func (w *world) meddle(r *rand.Rand) {
	switch {
	case w.split != nil && !w.split.deleting && r.IntN(2) == 0:
		w.drift(strategy.Route{Weight: -1})
	case w.split != nil && !w.split.deleting:
		w.split.deleting, w.split.lag, w.tampered = true, 0, true
		w.say("user: deletes the TrafficSplit")
	}
}

// comeToRest takes every obstacle away and waits until there is nothing to do.
func (w *world) comeToRest() {
	w.t.Helper()
	w.crashAt, w.rps, w.ro.Spec.Paused, w.unoffered = 0, 200, false, false
	w.freeze("")
	if w.dep.replicas == 0 {
		w.dep.replicas = 3
	}
	w.run(1)
	for range 40 {
		if len(w.asked) > 0 {
			w.answer(state.Answer{Final: true, Taken: true})
		}
		w.run(100)
		if w.gone || w.atRest() && len(w.asked) == 0 {
			return
		}
		// A user has to open the gates.
		if c := w.ro.Status.Canary; c != nil && (w.is(v1alpha1.ReasonWaitingForApproval) || w.is(v1alpha1.ReasonAnalysisFailed)) {
			w.control(v1alpha1.ControlSkip, c.Revision)
			w.ro.Spec.Control.StepIndex = new(w.ro.Status.Step.Index)
		}
	}
	w.t.Fatalf("never at rest: %s\n%s", readyMessage(w.ro), w.tail())
}

// stableTemplate is what the stable version is made of.
func (w *world) stableTemplate() string {
	if s := w.ro.Status.Stable; s != nil {
		if rs := w.byRevision(s.Revision); rs != nil {
			return rs.template
		}
	}
	return ""
}

// atRest is Ready on what Git says, or rolled back to stable.
func (w *world) atRest() bool {
	if w.rolledBack() {
		return w.split == nil && w.dep.paused
	}
	r := w.newest()
	if w.is(v1alpha1.ReasonDeploying) && w.broken[w.stableTemplate()] {
		return true // nothing can be released as long as stable is not up
	}
	if r != nil && w.broken[r.template] {
		return w.is(v1alpha1.ReasonDeploying) || w.is(v1alpha1.ReasonUnguardedChange) // it came up while the operator was down
	}
	return w.is("Stable") && r != nil && w.ro.Status.Stable.Revision == r.revision && w.split == nil
}
