// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// losesCanary takes pods of the canary away, which don't come back as long as its
// template is broken.
func (w *world) losesCanary(left int32) {
	rs := w.byRevision(w.ro.Status.Canary.Revision)
	w.broken[rs.template], rs.available = true, left
	w.touch(rs)
	w.say("node: %d pods of %s are left", left, rs.revision)
}

func TestACanaryThatLosesAPartOfItsPodsHasTheProgressDeadlineToGetThemBack(t *testing.T) {
	halved := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t)
		w.ro.Spec.ProgressDeadline = "5m"
		w.steps(v1alpha1.Step{Weight: 50, Hold: "2h"})
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonHolding)
		w.run(1200) // the deadline of the step itself is long over
		w.losesCanary(1)
		w.run(240)
		if !w.is(v1alpha1.ReasonWaitingForPods) {
			t.Fatalf("before the deadline: %s", readyMessage(w.ro))
		}
		return w
	}
	t.Run("and is rolled back when it does not", func(t *testing.T) {
		w := halved(t)
		w.run(70)
		w.until("rolled back", w.rolledBack)
		if got := w.ro.Status.Decision.Reason; got != v1alpha1.ReasonProgressDeadlineExceeded {
			t.Errorf("the reason is %s", got)
		}
		if m := w.ro.Status.History[0].Message; !strings.Contains(m, "1 of the canary's 2 pods") {
			t.Errorf("the history says: %s", m)
		}
	})
	t.Run("and goes on when it does, and has it again at the next loss", func(t *testing.T) {
		w := halved(t)
		w.broken["v2"] = false
		w.untilReason(v1alpha1.ReasonHolding)
		w.run(600)
		w.losesCanary(1)
		w.run(240)
		if !w.is(v1alpha1.ReasonWaitingForPods) {
			t.Fatalf("before the second deadline: %s\n%s", readyMessage(w.ro), w.tail())
		}
		w.broken["v2"] = false
		w.run(5000)
		w.ready()
	})
	t.Run("also when the operator crashes meanwhile", func(t *testing.T) {
		w := halved(t)
		w.forget() // its process remembers nothing
		w.run(70)
		w.until("rolled back", w.rolledBack)
	})
	t.Run("also without a router", func(t *testing.T) {
		w := newWorld(t)
		w.ro.Spec.ProgressDeadline, w.ro.Spec.Router, w.dep.replicas = "5m", v1alpha1.RouterNone, 10
		w.steps(v1alpha1.Step{Weight: 50, Hold: "2h"})
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonHolding)
		w.losesCanary(3)
		w.run(310)
		w.until("rolled back", w.rolledBack)
	})
}

// The testers' requests go to all pods until the router has confirmed that only
// a share of everybody's goes to fewer of them.
func TestAStepWithFewerPodsTakesThemAwayOnlyWhenItsRouteIsLive(t *testing.T) {
	w := newWorld(t)
	all := intstr.FromString("100%")
	w.steps(
		v1alpha1.Step{Weight: 100, Matches: []string{"testers"}, Hold: "20s", CanaryReplicas: &all},
		v1alpha1.Step{Weight: 20, Hold: "20s"},
	)
	w.routerLag = 5
	w.ready()
	w.setTemplate("v2")
	w.until("the testers meet it", func() bool { return w.split != nil && w.split.cutOver && len(w.split.requested.Matches) > 0 })
	w.until("fewer pods", func() bool { return w.byRevision("sv2").replicas == 1 })
	if w.split.served != w.split.generation || len(w.split.requested.Matches) > 0 {
		t.Errorf("pods went while the route was %s, live: %v\n%s", w.split.requested, w.split.served == w.split.generation, w.tail())
	}
	w.ready()
}

func TestTheRollbackWindowLetsNoVersionForwardAgainThatOneWentBackFrom(t *testing.T) {
	stableVersions := func(w *world, templates ...string) {
		for _, template := range templates {
			w.setTemplate(template)
			w.run(2)
			w.ready()
		}
	}
	without := func(w *world) bool {
		return strings.Contains(w.ro.Status.History[0].Message, "spec.rollbackWindow")
	}
	for _, test := range []struct {
		name      string
		templates []string // v1 is stable before
		want      bool
	}{
		{"back", []string{"v2", "v1"}, true},
		{"forward again", []string{"v2", "v1", "v2"}, false},
		{"forward to one in between", []string{"v2", "v3", "v1", "v2"}, false},
		{"back over one that was gone back from", []string{"v2", "v1", "v3", "v1"}, true},
		{"back to one that was gone back from, and not again since", []string{"v2", "v1", "v3", "v2"}, false},
		{"back to one that passed its steps since", []string{"v2", "v1", "v2", "v3", "v2"}, true},
		{"back and back again", []string{"v2", "v3", "v2", "v1"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.ro.Spec.RollbackWindow = &v1alpha1.RollbackWindow{Revisions: 3}
			w.ready()
			stableVersions(w, test.templates...)
			if got := without(w); got != test.want {
				t.Errorf("without steps: %v, want %v\n%s", got, test.want, w.tail())
			}
		})
	}
	t.Run("one that was rolled back since it was stable", func(t *testing.T) {
		w := newWorld(t)
		w.ready()
		stableVersions(w, "v2")
		w.failures["v1"] = 50 // what it needs is gone by now
		w.setTemplate("v1")
		w.until("rolled back", w.rolledBack)
		w.setTemplate("v2")
		w.ready()
		w.failures["v1"] = 0
		w.ro.Spec.RollbackWindow = &v1alpha1.RollbackWindow{Revisions: 3}
		stableVersions(w, "v1")
		if without(w) {
			t.Errorf("it came back without steps\n%s", w.tail())
		}
	})
	t.Run("with a short history", func(t *testing.T) {
		w := newWorld(t)
		w.ro.Spec.RollbackWindow, w.ro.Spec.HistoryLimit = &v1alpha1.RollbackWindow{Revisions: 3}, new(int32(2))
		w.ready()
		stableVersions(w, "v2", "v1", "v2")
		if without(w) {
			t.Errorf("it came forward without steps\n%s", w.tail())
		}
	})
}

func TestADeletedSplitIsWaitedForBeforeTheRejectedCanaryLosesItsPods(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.untilWeight(50)
	w.routerLag = 10
	w.split.deleting, w.split.lag, w.tampered = true, 0, true
	w.say("user: deletes the TrafficSplit")
	w.control(v1alpha1.ControlAbort, "sv2")
	for w.split != nil {
		w.tick()
		if rs := w.byRevision("sv2"); w.split != nil && rs.available == 0 {
			t.Fatalf("no pods while weight %d is live\n%s", w.split.observed, w.tail())
		}
	}
	w.until("rolled back", w.rolledBack)
	if slices.ContainsFunc(w.rss, func(rs *replicaSet) bool { return rs.revision == "sv2" && rs.existing > 0 }) {
		t.Errorf("the canary's pods stay\n%s", w.tail())
	}
}
