// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// notBusy fails the test when the operator looks again although nothing changes.
func (w *world) notBusy() {
	w.t.Helper()
	for range 120 {
		w.tick()
		if !w.due.IsZero() && w.due.Sub(w.now) < time.Second/2 {
			w.t.Fatalf("looks again after %v, time and again\n%s", w.due.Sub(w.now), w.tail())
		}
	}
}

func TestAnAnalysisWithoutDataDoesNotKeepTheOperatorBusy(t *testing.T) {
	t.Run("after it failed", func(t *testing.T) {
		w := newWorld(t)
		w.ro.Spec.Strategy.OnFailure = v1alpha1.OnFailurePause
		w.failures["v2"] = 5
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonAnalysisFailed)
		w.rps = 0
		w.run(60)
		w.notBusy()
	})
	t.Run("at the next step", func(t *testing.T) {
		w := newWorld(t)
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.run(25)
		w.until("weight 50 asked", func() bool { return w.split.requested.Weight == 50 })
		w.rps = 0
		w.run(60)
		w.notBusy()
	})
}

func TestAFailedAnalysisHoldsThePromotionToo(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Strategy.OnFailure = v1alpha1.OnFailurePause
	w.hooks(v1alpha1.Hook{Name: "approval", When: v1alpha1.HookBeforePromotion})
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonWaitingForHook)
	w.failures["v2"] = 20
	w.untilReason(v1alpha1.ReasonAnalysisFailed)
	w.answer(state.Answer{Final: true, Taken: true})
	w.run(300)
	if w.split.requested.Weight != 50 {
		t.Fatalf("weight %s\n%s", w.split.requested, w.tail())
	}
	if m := readyMessage(w.ro); !strings.Contains(m, "50 % of the traffic") {
		t.Errorf("it says: %s", m)
	}
	w.control(v1alpha1.ControlPromoteFull, "sv2")
	w.until("asked", func() bool { return w.is(v1alpha1.ReasonWaitingForHook) || w.is(v1alpha1.ReasonPromoting) })
	w.answer(state.Answer{Final: true, Taken: true})
	w.ready()
}

func TestTheHookBeforePromotionIsAskedBeforeAllTrafficMoves(t *testing.T) {
	for name, strategy := range map[string]v1alpha1.Strategy{
		"blue-green":             {Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Hold: "20s", ScaleDownDelay: "60s"}},
		"a last step of hundred": {Steps: []v1alpha1.Step{{Weight: 10}, {Weight: 100, Hold: "30s"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ro.Spec.Strategy = strategy
			w.hooks(v1alpha1.Hook{Name: "approval", When: v1alpha1.HookBeforePromotion})
			w.ready()
			w.setTemplate("v2")
			w.untilReason(v1alpha1.ReasonWaitingForHook)
			w.run(100)
			if w.split.requested.Weight == 100 {
				t.Fatalf("not asked\n%s", w.tail())
			}
			w.answer(state.Answer{Final: true, Taken: true})
			w.ready()
			if n := strings.Count(strings.Join(w.log, "\n"), "> approval"); n != 1 {
				t.Errorf("asked %d times\n%s", n, strings.Join(w.log, "\n"))
			}
		})
	}
	t.Run("without a router", func(t *testing.T) {
		w := newWorld(t)
		w.ro.Spec.Router = v1alpha1.RouterNone
		w.hooks(v1alpha1.Hook{Name: "approval", When: v1alpha1.HookBeforePromotion})
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForHook)
		w.run(100)
		w.answer(state.Answer{Final: true, Taken: true})
		w.ready()
	})
}

func TestAHookHasItsTimeAfterAFreeze(t *testing.T) {
	w := newWorld(t)
	w.hooks(v1alpha1.Hook{Name: "tests", When: v1alpha1.HookBeforeStep, Timeout: "5m"})
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonWaitingForHook)
	w.freeze("audit")
	w.run(1200)
	w.freeze("")
	w.run(5)
	if !w.is(v1alpha1.ReasonWaitingForHook) {
		t.Fatalf("it was not asked in the freeze: %s", w.tail())
	}
	w.answer(state.Answer{Final: true, Taken: true})
	w.untilWeight(10)
	w.run(1)
	w.until("rolled back", w.rolledBack) // no endpoint answers before the next step
}

func TestAHookIsAskedOnceMoreAfterTheOperatorWasDownForAllOfItsTime(t *testing.T) {
	for name, test := range map[string]struct {
		answer state.Answer
		want   func(*world) bool
	}{
		"and approves":       {state.Answer{Tried: true, Final: true, Taken: true}, func(w *world) bool { return w.split != nil && w.split.observed == 10 }},
		"and says nothing":   {state.Answer{Tried: true}, (*world).rolledBack},
		"and is unreachable": {state.Answer{Tried: true, Message: "no route to host"}, (*world).rolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hooks(v1alpha1.Hook{Name: "tests", When: v1alpha1.HookBeforeStep, Timeout: "5m"})
			w.ready()
			w.setTemplate("v2")
			w.untilReason(v1alpha1.ReasonWaitingForHook)
			w.now = w.now.Add(time.Hour)
			open := w.asked
			w.asked, w.lookout, w.dirty = nil, state.Lookout{}, true
			w.reconcile()
			if !w.is(v1alpha1.ReasonWaitingForHook) {
				t.Fatalf("it was not asked: %s", readyMessage(w.ro))
			}
			w.notBusyUntilAsked()
			w.asked = open
			w.answer(test.answer)
			w.until(name, func() bool { return test.want(w) })
		})
	}
}

// notBusyUntilAsked fails the test when the operator looks again before there is an
// answer.
func (w *world) notBusyUntilAsked() {
	w.t.Helper()
	if !w.due.IsZero() {
		w.t.Fatalf("it looks again in %v", w.due.Sub(w.now))
	}
}

func TestTheDeadlineHoldsForARouterThatNeverTakesTheTraffic(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.ProgressDeadline = "60s"
	w.ready()
	w.routerLag = 1 << 30
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonPreparing)
	w.until("rolling back", func() bool { return w.is(v1alpha1.ReasonRollingBack) })
	if d := w.known().Decision; d == nil || d.Reason != v1alpha1.ReasonProgressDeadlineExceeded {
		t.Errorf("decision %+v", d)
	}
	w.routerLag = 1
	w.until("rolled back", w.rolledBack)
}

func TestADeletedServiceOfStableIsMadeAgainDuringARollback(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.untilWeight(50)
	w.routerLag = 1 << 30
	w.control(v1alpha1.ControlAbort, "sv2")
	w.run(3)
	delete(w.services, v1alpha1.RoleStable)
	w.run(3)
	if w.services[v1alpha1.RoleStable] == "" {
		t.Errorf("no Service of stable\n%s", w.tail())
	}
	w.routerLag = 1
	w.until("rolled back", w.rolledBack)
}

func TestServicesThatAreSwappedAndSwappedBackGetNoTrafficByThat(t *testing.T) {
	w := newWorld(t)
	w.twoServices()
	w.behindCanary("v2", 2)
	w.untilWeight(10)
	swap := func(stable, canary string) {
		w.edit("services "+stable+", "+canary, func(s *v1alpha1.RolloutSpec) {
			s.Services = &v1alpha1.ServicePair{Stable: stable, Canary: canary}
		})
		w.split.requested.Weight, w.split.observed = 100-w.split.requested.Weight, 100-w.split.observed
		w.pair.StableRevision, w.pair.CanaryRevision = w.pair.CanaryRevision, w.pair.StableRevision
		w.pair.StableReady, w.pair.CanaryReady = w.pair.CanaryReady, w.pair.StableReady
	}
	swap("foobar-v2", "foobar-v1")
	w.run(10)
	if w.ro.Status.Step != nil {
		t.Errorf("a step without a release: %s", readyMessage(w.ro))
	}
	swap("foobar-v1", "foobar-v2")
	for range 20 {
		w.tick()
		if w.split.requested.Weight > 10 {
			t.Fatalf("weight %s\n%s", w.split.requested, w.tail())
		}
	}
	w.untilWeight(100)
}

func TestAPairThatWasRolledBackHasNoStep(t *testing.T) {
	w := newWorld(t)
	w.failures["v2"] = 5
	w.twoServices()
	w.behindCanary("v2", 2)
	w.until("rolled back", w.rolledBack)
	if w.ro.Status.Step != nil {
		t.Errorf("step %s", w.ro.Status.Step.Summary)
	}
}

func TestARouterIsTakenOutOfAReleaseInProgress(t *testing.T) {
	for name, then := range map[string]func(*world){
		"goes on":        func(*world) {},
		"is aborted":     func(w *world) { w.control(v1alpha1.ControlAbort, "sv2") },
		"is set back":    func(w *world) { w.setTemplate("v1") },
		"is superseded":  func(w *world) { w.setTemplate("v3") },
		"is deleted":     func(w *world) { w.remove() },
		"scales to zero": func(w *world) { w.dep.replicas = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready()
			w.setTemplate("v2")
			w.untilWeight(50)
			w.edit("router none", func(s *v1alpha1.RolloutSpec) { s.Router = v1alpha1.RouterNone })
			then(w)
			for range 600 {
				w.tick()
				if s := w.split; s != nil && s.observed > 0 && w.byRevision("sv2").available == 0 {
					t.Fatalf("S1: weight %d without pods\n%s", s.observed, w.tail())
				}
				if s := w.split; s != nil && !s.deleting && w.now.Sub(epoch) > 10*time.Minute {
					t.Fatalf("the split stays\n%s", w.tail())
				}
			}
		})
	}
}

func TestWhatIsToldOfASupersededReleaseNamesItsRevision(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Notifications = []v1alpha1.Notification{{Name: "everything"}}
	w.ready()
	w.setTemplate("v2")
	w.untilWeight(10)
	w.setTemplate("v3")
	w.run(3)
	for _, n := range w.ro.Status.Notifications {
		if n.Kind == v1alpha1.NotifySuperseded && n.Revision != "sv2" {
			t.Errorf("revision %s was superseded", n.Revision)
		}
	}
}

func TestATemplateThatIsSetBackDuringThePromotionIsOnRecord(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonPromoting)
	w.setTemplate("v1")
	w.run(2)
	w.ready()
	if h := w.ro.Status.History[0]; h.Revision != "sv2" || h.Outcome != v1alpha1.OutcomeSuperseded {
		t.Errorf("history begins with %s of %s", h.Outcome, h.Revision)
	}
}

func TestWeightObservedIsUnknownWithoutASplit(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.untilWeight(50)
	w.run(3)
	w.split, w.tampered = nil, true
	d := Decide(w.observe())
	if o := d.Status.Weight.Observed; o != nil {
		t.Errorf("observed %d", *o)
	}
	if !d.Weight.Since.IsZero() {
		t.Errorf("traffic is compared since %v", d.Weight.Since)
	}
}

func TestARampThatPassedTheSchemaBySteepness(t *testing.T) {
	var s strategy.Settings
	if err := s.Ramp(&v1alpha1.Ramp{From: 1, To: 50, By: new(int32(1<<31 - 1))}); err != nil || len(s.Steps) != 2 {
		t.Errorf("%d steps, %v", len(s.Steps), err)
	}
}

func TestStepsEditedWithoutARouterNeverJumpUp(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Router, w.dep.replicas = v1alpha1.RouterNone, 10
	w.steps(v1alpha1.Step{Weight: 10, Hold: "30s"}, v1alpha1.Step{Weight: 50, Hold: "30s"})
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonHolding)
	before := w.byRevision("sv2").replicas
	w.freeze("audit")
	w.edit("steps 30, 50", func(s *v1alpha1.RolloutSpec) {
		s.Strategy.Steps = []v1alpha1.Step{{Weight: 30, Hold: "30s"}, {Weight: 50, Hold: "30s"}}
	})
	w.run(10)
	if now := w.byRevision("sv2").replicas; now > before {
		t.Errorf("%d pods, after %d", now, before)
	}
	w.freeze("")
	w.ready()
}

func TestAPromotionDoesNotFightOverATemplateThatMovedOn(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.until("handed over", w.handedOver)
	w.setTemplate("v3")
	w.dep.paused, w.dep.held = false, false
	w.say("user: un-pauses the Deployment")
	w.deploymentController()
	if got := Decide(w.observe()).Actions; len(got) != 1 || got[0] != (state.SetPaused{Paused: true}) {
		t.Fatalf("%v, although the Deployment controller would undo it", got)
	}
	w.dep.paused, w.dep.held = true, true
	if got := Decide(w.observe()).Actions; len(got) == 0 {
		t.Fatal("other pods stay for ever")
	}
}

func TestASuspectedCanaryGoesOnWhenAPersonSkipsTheStep(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Analysis = &v1alpha1.Analysis{}
	w.ready()
	w.setTemplate("v2")
	w.untilWeight(10)
	w.until("suspected", func() bool {
		w.failures["v2"] = 1
		a := w.known().Analysis
		return a != nil && a.Reason == "Suspected" || w.rolledBack()
	})
	if w.rolledBack() {
		t.Fatalf("not suspected before it failed")
	}
	w.failures["v2"], w.rps = 0, 20
	w.control(v1alpha1.ControlSkip, "sv2")
	w.run(10)
	if w.split.requested.Weight != 50 {
		t.Errorf("weight %s, %s\n%s", w.split.requested, w.known().Analysis.Reason, w.tail())
	}
}

func TestAPairThatWasRolledBackStaysSoWhenItIsScaledToZeroAndBack(t *testing.T) {
	w := newWorld(t)
	w.failures["v2"] = 5
	w.twoServices()
	w.behindCanary("v2", 2)
	w.until("rolled back", w.rolledBack)
	w.behindCanary("", 1) // the last pod is still ready
	w.run(5)
	w.behindCanary("", 0)
	w.run(5)
	w.behindCanary("v2", 2)
	w.run(60)
	if !w.rolledBack() || w.split.requested.Weight > 0 {
		t.Errorf("S4: %s\n%s", readyMessage(w.ro), w.tail())
	}
}
