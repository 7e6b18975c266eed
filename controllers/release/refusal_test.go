// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// obstacles are what makes a Rollout impossible to serve in the middle of a release.
var obstacles = map[string]struct {
	reason      v1alpha1.Reason
	come, leave func(*world)
	unmeasured  bool
}{
	"a time zone that there is not": {
		v1alpha1.ReasonInvalidSpec,
		func(w *world) {
			w.edit("a bad time zone", func(s *v1alpha1.RolloutSpec) { s.Schedule = &v1alpha1.Schedule{TimeZone: "Mars/Olympus"} })
		},
		func(w *world) {
			w.edit("no schedule", func(s *v1alpha1.RolloutSpec) { s.Schedule = nil })
		}, false,
	},
	"a router that is not offered": {
		v1alpha1.ReasonRouterUnavailable,
		func(w *world) { w.unoffered, w.dirty = true, true },
		func(w *world) { w.unoffered, w.dirty = false, true }, false,
	},
	"a router that can't do what the strategy needs": {
		v1alpha1.ReasonInvalidSpec,
		func(w *world) {
			w.edit("router none with a mirror", func(s *v1alpha1.RolloutSpec) {
				s.Router, s.Strategy.Steps[len(s.Strategy.Steps)-1].Mirror = v1alpha1.RouterNone, new(int32(10))
			})
		},
		func(w *world) {
			w.edit("router nginx", func(s *v1alpha1.RolloutSpec) {
				s.Router, s.Strategy.Steps[len(s.Strategy.Steps)-1].Mirror = v1alpha1.RouterNginx, nil
			})
		}, false,
	},
	"a Service that became headless": {
		v1alpha1.ReasonInvalidService,
		func(w *world) { w.problem, w.dirty = "the Service is headless", true },
		func(w *world) { w.problem, w.dirty = "", true }, false,
	},
}

// hindered is a release at 50 % that meets an obstacle.
func hindered(t *testing.T, name string) *world {
	t.Helper()
	w := newWorld(t)
	w.steps(v1alpha1.Step{Weight: 10, Hold: "30s"}, v1alpha1.Step{Weight: 50, Hold: "30s"}, v1alpha1.Step{Weight: 80, Hold: "30s"})
	w.ready()
	w.setTemplate("v2")
	w.untilWeight(50)
	w.run(2)
	obstacles[name].come(w)
	w.run(2)
	return w
}

func TestWhatCantBeServedCanStillBeTakenBack(t *testing.T) {
	for name, obstacle := range obstacles {
		t.Run(name, func(t *testing.T) {
			t.Run("the release stays where it is, and goes on later", func(t *testing.T) {
				w := hindered(t, name)
				w.run(600)
				if !w.is(obstacle.reason) || w.split.observed != 50 {
					t.Fatalf("weight %d: %s\n%s", w.split.observed, readyMessage(w.ro), w.tail())
				}
				if m := readyMessage(w.ro); !strings.Contains(m, "50 % of the traffic goes to the canary") {
					t.Errorf("it does not say where the release is: %s", m)
				}
				obstacle.leave(w)
				w.ready()
			})
			t.Run("a bad canary is rolled back", func(t *testing.T) {
				w := hindered(t, name)
				w.failures["v2"] = 20
				w.until("no traffic", func() bool { return w.split == nil })
				w.until("said", func() bool { return w.is(obstacle.reason) })
				if m := readyMessage(w.ro); !strings.Contains(m, "sv2 was rolled back") {
					t.Errorf("it does not say that: %s", m)
				}
				w.checkQuiet()
				obstacle.leave(w)
				w.until("rolled back", w.rolledBack)
			})
			t.Run("a canary whose pods are gone is rolled back", func(t *testing.T) {
				w := hindered(t, name)
				w.losesCanary(0)
				w.until("no traffic", func() bool { return w.split == nil })
			})
			t.Run("a user aborts", func(t *testing.T) {
				w := hindered(t, name)
				w.control(v1alpha1.ControlAbort, "sv2")
				w.until("no traffic", func() bool { return w.split == nil })
				if got := w.ro.Status.History[0].Outcome; got != v1alpha1.OutcomeRolledBack {
					t.Errorf("the history begins with %s", got)
				}
			})
			t.Run("another actor gives the canary more traffic", func(t *testing.T) {
				w := hindered(t, name)
				w.drift(strategy.Route{Weight: 90})
				w.run(10)
				if w.split.requested.Weight != 50 {
					t.Errorf("weight %s\n%s", w.split.requested, w.tail())
				}
			})
			t.Run("another actor removes all of it", func(t *testing.T) {
				w := hindered(t, name)
				w.drift(strategy.Route{})
				w.run(10)
				if w.split.requested.Weight != 0 {
					t.Errorf("weight %s\n%s", w.split.requested, w.tail())
				}
				obstacle.leave(w)
				w.ready()
			})
			t.Run("another actor deletes the split", func(t *testing.T) {
				w := hindered(t, name)
				w.split.deleting, w.split.lag, w.tampered, w.dirty = true, 0, true, true
				w.until("gone", func() bool { return w.split == nil })
				w.run(10)
				if pods := w.byRevision("sv2").existing; pods > 0 && !w.byReplicas() {
					t.Errorf("%d pods that nothing governs\n%s", pods, w.tail())
				}
			})
			t.Run("no other decision is carried out", func(t *testing.T) {
				w := hindered(t, name)
				w.control(v1alpha1.ControlPromoteFull, "sv2")
				w.run(120)
				if w.split.requested.Weight != 50 {
					t.Errorf("weight %s\n%s", w.split.requested, w.tail())
				}
				obstacle.leave(w)
				w.ready()
			})
			t.Run("the template is set back", func(t *testing.T) {
				w := hindered(t, name)
				w.setTemplate("v1")
				w.until("no traffic", func() bool { return w.split == nil })
				w.until("no pods", func() bool { return w.byRevision("sv2") == nil })
				w.checkQuiet()
			})
			t.Run("a newer template takes the canary out and waits", func(t *testing.T) {
				w := hindered(t, name)
				w.setTemplate("v3")
				w.until("no pods", func() bool { return w.byRevision("sv2") == nil })
				w.run(60)
				if rs := w.byRevision("sv3"); rs != nil {
					t.Errorf("a new release has begun\n%s", w.tail())
				}
				obstacle.leave(w)
				w.ready()
			})
			t.Run("the Rollout is deleted", func(t *testing.T) {
				w := hindered(t, name)
				w.remove()
				w.until("gone", func() bool { return w.gone })
			})
		})
	}
}

func TestARollbackOrAPromotionThatIsUnderWayIsSeenThrough(t *testing.T) {
	for name := range obstacles {
		t.Run("rollback, "+name, func(t *testing.T) {
			w := hindered(t, name)
			obstacles[name].leave(w)
			w.control(v1alpha1.ControlAbort, "sv2")
			w.run(1)
			obstacles[name].come(w)
			w.until("no split", func() bool { return w.split == nil })
			w.until("no pods", func() bool { return w.byRevision("sv2").existing == 0 })
		})
		t.Run("promotion, "+name, func(t *testing.T) {
			w := newWorld(t)
			w.ready()
			w.setTemplate("v2")
			w.until("handed over", w.handedOver)
			obstacles[name].come(w)
			w.until("stable", func() bool { return w.ro.Status.Stable.Revision == "sv2" })
			w.until("no split", func() bool { return w.split == nil })
			w.checkQuiet()
		})
	}
}

// A Service that can't be split is no model for those of the versions.
func TestTheServicesOfTheVersionsAreNotMadeAfterAnUnsuitableOne(t *testing.T) {
	w := hindered(t, "a Service that became headless")
	w.routerLag = 1 << 30
	w.control(v1alpha1.ControlAbort, "sv2")
	o := w.observe()
	o.StableService.UpToDate, o.CanaryService.UpToDate = false, false
	if slices.ContainsFunc(Decide(o).Actions, func(a kit.Action) bool { _, is := a.(kit.ApplyBackend); return is }) {
		t.Errorf("they are: %v", Decide(o).Actions)
	}
}

func TestAReleaseWhoseRouterIsGoneIsRolledBackSinceNothingGovernsItsTraffic(t *testing.T) {
	w := hindered(t, "a router that is not offered")
	w.split.withdrawn, w.split.observed, w.tampered, w.dirty = true, -1, true, true
	w.say("router: gives the Service back")
	w.until("no pods", func() bool { return w.byRevision("sv2").existing == 0 })
	if got := w.ro.Status.Decision.Reason; got != v1alpha1.ReasonRouterUnavailable {
		t.Errorf("the reason is %s", got)
	}
}

func TestARouterThatConfirmsNothingIsNotWaitedForForEverByADeletion(t *testing.T) {
	for name, gone := range map[string]func(*world){
		"its router is gone":          func(w *world) { w.unoffered = true },
		"its proxies confirm nothing": func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ro.Spec.ProgressDeadline = "5m"
			w.ready()
			w.setTemplate("v2")
			w.untilWeight(50)
			gone(w)
			w.routerLag = 1 << 30
			w.remove()
			w.run(290)
			if w.split == nil || w.split.deleting || !w.is(v1alpha1.ReasonDeleting) || !strings.Contains(readyMessage(w.ro), "the router has not confirmed it yet") {
				t.Fatalf("before the deadline: %s\n%s", readyMessage(w.ro), w.tail())
			}
			w.run(20)
			if !w.split.deleting || w.byRevision("sv2").available == 0 {
				t.Fatalf("after it the split goes first: %s\n%s", readyMessage(w.ro), w.tail())
			}
			w.split, w.dirty = nil, true // its controller gives the Service back without the router
			w.tampered = true
			w.until("gone", func() bool { return w.gone })
			if w.byRevision("sv2") != nil || len(w.services) > 0 {
				t.Errorf("something is left\n%s", w.tail())
			}
		})
	}
}

func TestADeletionLeavesASplitOfAnotherOwnerAlone(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.remove()
	o := w.observe()
	o.Split = state.Split{Split: kit.Split{Presence: kit.Present, Object: kit.Object{UID: "theirs", ResourceVersion: "7"}}, Requested: strategy.Route{Weight: -1}, Observed: -1}
	for _, a := range Decide(o).Actions {
		switch a.(type) {
		case state.ApplySplit, kit.DeleteSplit:
			t.Errorf("%s", a)
		}
	}
}

func TestAPairWhoseStableServiceIsGoneIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.twoServices()
	w.behindCanary("v2", 2)
	w.untilWeight(50)
	w.routerLag = 1 << 30 // no pod could take the requests that stable would get
	w.pair.Missing, w.pair.StableReady, w.tampered = "foobar-v1", 0, true
	w.dirty = true
	w.run(5)
	if !w.is(v1alpha1.ReasonServiceNotFound) {
		t.Errorf("it says: %s", readyMessage(w.ro))
	}
	w.remove()
	w.run(5)
	if !w.split.deleting {
		t.Fatalf("the split stays: %s\n%s", readyMessage(w.ro), w.tail())
	}
	w.routerLag = 1
	w.until("gone", func() bool { return w.gone })
}

func TestAReleaseOfTwoServicesThatAreNamedNoMoreSendsTheTrafficHome(t *testing.T) {
	w := newWorld(t)
	w.twoServices()
	w.behindCanary("v2", 2)
	w.untilWeight(50)
	w.edit("services foobar-v3, foobar-v4", func(s *v1alpha1.RolloutSpec) {
		s.Services = &v1alpha1.ServicePair{Stable: "foobar-v3", Canary: "foobar-v4"}
	})
	w.split.requested, w.split.observed = strategy.Route{Weight: -1}, -1 // other names
	w.pair = state.Pair{StableRevision: "v3", CanaryRevision: "v4", StableReady: 2, CanaryReady: 2}
	w.untilWeight(0)
	w.run(60)
	if !w.is(v1alpha1.ReasonConflict) || w.split.requested.Weight != 0 || w.ro.Status.Step != nil {
		t.Errorf("weight %s: %s\n%s", w.split.requested, readyMessage(w.ro), w.tail())
	}
	if got := w.ro.Status.History[0].Outcome; got != v1alpha1.OutcomeSuperseded {
		t.Errorf("the history begins with %s", got)
	}
}

// Of two names that are taken, always the same one is reported: a message that changes
// from look to look is written to the status each time.
func TestOfTwoTakenNamesTheSameOneIsReported(t *testing.T) {
	w := newWorld(t)
	w.ready()
	o := w.observe()
	o.StableService, o.CanaryService = kit.Backend{Presence: kit.Present}, kit.Backend{Presence: kit.Present}
	first := Decide(o)
	for range 200 {
		if diff := cmp.Diff(first, Decide(o)); diff != "" {
			t.Fatalf("another decision on the same observation (-first +this):\n%s", diff)
		}
	}
	if ready := meta.FindStatusCondition(first.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(ready.Message, `The Service "website-stable" exists already`) {
		t.Errorf("the message is %q", ready.Message)
	}
}
