// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// What the exploration and the random histories found, each with the way there.

func init() {
	scenarios = append(scenarios,
		scenario{"a version that was rolled back stays out when the workload is scaled to zero and back", func(w *world) {
			w.failures["v2"] = 50
			w.ready()
			w.setTemplate("v2")
			w.until("rolled back", w.rolledBack)
			w.dep.replicas = 0
			w.say("user: scales to 0")
			w.run(30)
			w.dep.replicas = 4
			w.say("user: scales to 4")
			w.run(30)
		}},
		scenario{"an older version that is stable comes back from zero while another is released", func(w *world) {
			w.olderIsStable()
			w.dep.replicas = 0
			w.say("user: scales to 0")
			w.run(30)
			w.freeze("audit")
			w.setTemplate("v3")
			w.dep.replicas = 4
			w.say("user: scales to 4")
			w.until("up", func() bool { return w.byRevision(w.ro.Status.Stable.Revision).available == 4 })
			w.freeze("")
			w.ready()
		}},
		scenario{"an older version that is stable comes back from zero in the middle of a release", func(w *world) {
			w.olderIsStable()
			w.setTemplate("v3")
			w.untilWeight(10)
			w.dep.replicas = 0
			w.say("user: scales to 0")
			w.run(60)
			w.dep.replicas = 4
			w.say("user: scales to 4")
			w.ready()
		}},
	)
}

// olderIsStable releases v2, and v1 again, so that the newest ReplicaSet of the
// Deployment is not the stable one.
func (w *world) olderIsStable() {
	w.ready()
	w.setTemplate("v2")
	w.run(2)
	w.ready()
	w.setTemplate("v1")
	w.run(2)
	w.ready()
}

// A version can be rejected before it was a canary. Where the Deployment has an old
// ReplicaSet of it, a paused Deployment that is scaled from zero would bring that up.
func TestARejectedVersionWithAnOldReplicaSetDoesNotComeUpFromZero(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.ProgressDeadline = "60s"
	w.olderIsStable()
	w.routerLag = 1000
	w.setTemplate("v2")
	w.run(70)
	w.routerLag = 1
	w.until("rolled back", w.rolledBack)
	w.run(5)
	w.dep.replicas = 0
	w.run(30)
	w.dep.replicas = 4
	w.run(60)
	if rs := w.byRevision("sv2"); rs.existing > 0 || !w.rolledBack() {
		t.Errorf("%d pods of the rejected version; %s\n%s", rs.existing, readyMessage(w.ro), w.tail())
	}
	if rs := w.byRevision("kv1"); rs.available != 4 {
		t.Errorf("%d pods of the stable version\n%s", rs.available, w.tail())
	}
}

// A crash before the weight of a step is written leaves the weight of the step before: a
// pause that comes before the operator is back holds the new one up.
func TestAWeightThatWasNeverWrittenIsHeldUpByAPause(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.until("a canary", func() bool { return w.byRevision("sv2") != nil })
	for w.byRevision("sv2").available == 0 {
		w.now = w.now.Add(time.Second)
		w.replicaSetController()
	}
	d, _ := w.look() // and the operator crashes before it writes
	if !slices.Contains(actionTexts(d.Actions), state.ApplySplit{Route: strategy.Route{Weight: 10}}.String()) {
		t.Fatalf("the weight is not asked for, but %v is done", d.Actions)
	}
	w.edit("paused", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
	w.run(120)
	if got := w.split.requested.Weight; got != 0 {
		t.Errorf("weight %d was written in a pause\n%s", got, w.tail())
	}
	w.edit("not paused", func(s *v1alpha1.RolloutSpec) { s.Paused = false })
	w.ready()
}

// The weight that the split asks for is not on record at once. It is the step's all the
// same: a pause does not undo it, and only a canary without pods for it loses it.
func TestAWeightThatIsNotOnRecordYetIsTheSteps(t *testing.T) {
	asked := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t)
		w.routerLag = 5
		w.ready()
		w.setTemplate("v2")
		w.until("requested", func() bool { return w.split != nil && w.split.requested.Weight == 10 })
		if record := w.ro.Status.Weight.Requested; record != 0 {
			t.Fatalf("weight %d is on record already", record)
		}
		return w
	}
	t.Run("in a pause", func(t *testing.T) {
		w := asked(t)
		w.edit("paused", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
		w.run(60)
		if got := w.split.requested.Weight; got != 10 || w.ro.Status.Step.ProgrammedAt == nil {
			t.Errorf("the split asks for %d; %s\n%s", got, readyMessage(w.ro), w.tail())
		}
	})
	t.Run("without pods for it", func(t *testing.T) {
		w := asked(t)
		w.broken["v2"] = true
		w.byRevision("sv2").available = 0
		w.run(3)
		if got := w.split.requested.Weight; got != 0 {
			t.Errorf("the split asks for %d; %s\n%s", got, readyMessage(w.ro), w.tail())
		}
	})
}

// A release that has begun on record, before anything is in the path, has no canary.
// Pods of its template are the Deployment's own, and not a canary whose mark was lost.
func TestPodsFromBeforeTheTrafficIsUnderControlAreNoCanary(t *testing.T) {
	w := newWorld(t)
	w.guard = true
	w.ready()
	w.setTemplate("v2")
	w.dep.replicas = 0
	w.check()
	w.reconcile() // un-pauses: there is no traffic to split
	w.deploymentController()
	w.dep.replicas = 2
	w.look() // begins a release, and the operator crashes before it pauses
	w.deploymentController()
	w.ready()
	for _, line := range w.log {
		if strings.Contains(line, "adopt ReplicaSet website-kv2") {
			t.Errorf("the Deployment's own pods were taken for a canary:\n%s", w.tail())
		}
	}
}

// A rejected version keeps its empty ReplicaSet. A user who wants all of it at once
// does not bring up its pods before the traffic is under control.
func TestPromotingARejectedVersionFullyWaitsForTheRouterBeforeItsPods(t *testing.T) {
	w := newWorld(t)
	w.failures["v2"] = 20
	w.ready()
	w.setTemplate("v2")
	w.until("rolled back", w.rolledBack)
	w.failures["v2"] = 0
	w.freeze("audit")
	w.control(v1alpha1.ControlRetry, "sv2")
	w.run(5)
	w.control(v1alpha1.ControlPromoteFull, "sv2")
	w.run(5)
	w.freeze("")
	w.ready()
}

// Evidence against a canary that came up before it lost all of its traffic can be
// settled only by more traffic.
func TestASuspectedCanaryWithoutTrafficBeginsAgain(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.untilWeight(10)
	w.until("suspected", func() bool {
		w.failures["v2"] = 1
		return w.ro.Status.Analysis != nil && w.ro.Status.Analysis.Reason == "Suspected" || w.rolledBack()
	})
	w.failures["v2"] = 0
	w.dep.replicas = 0
	w.run(30)
	w.dep.replicas = 4
	w.untilWeight(10)
	w.ready()
}

// A Rollout that is deleted after a rollback leaves the Deployment paused on the
// rejected template. Another Rollout for it must not let that roll out.
func TestANewRolloutReleasesByStepsWhatAFormerOneRejected(t *testing.T) {
	w := newWorld(t)
	w.failures["v2"] = 5
	w.ready()
	w.setTemplate("v2")
	w.until("rolled back", w.rolledBack)
	w.remove()
	w.until("gone", func() bool { return w.gone })
	if !w.dep.paused {
		t.Fatal("the Deployment is not paused any more")
	}
	w.gone, w.ro = false, newWorld(t).ro
	w.ro.UID = "another"
	w.until("rolled back", w.rolledBack)
	if rs := w.byRevision(w.ro.Status.Stable.Revision); rs == nil || rs.template != "v1" {
		t.Errorf("stable is %+v\n%s", rs, w.tail())
	}
	w.setTemplate("v1")
	w.ready()
}

// Two Rollouts for one Deployment: the younger one restores what it began, and
// leaves the Deployment to the older one.
func TestARivalLeavesTheDeploymentAlone(t *testing.T) {
	w := newWorld(t)
	w.failures["v2"] = 5
	w.ready()
	w.setTemplate("v2")
	w.until("rolled back", w.rolledBack)
	o := w.observe()
	o.Rival, o.Workload.ManagedBy, o.Workload.Paused = "older", "older", false
	for _, a := range Decide(o).Actions {
		if _, hold := a.(state.SetPaused); hold {
			t.Errorf("acts: %s", a)
		}
	}
}

// The user's own limits count as long as they can be read.
func TestATemplateThatIsGoneDoesNotLoosenTheLimitsOfTheTraffic(t *testing.T) {
	spec := newWorld(t).ro.Spec
	spec.Analysis = &v1alpha1.Analysis{Tolerance: "0.1pp", MinSuccessRate: "99%"}
	s, err := strategy.Parse(&spec, v1alpha1.RouterNginx, nil, strategy.Metrics{Problem: "spec.analysis.templateRefs[0]: there is none"})
	if err == nil || s.Judge.Tolerance != .001 || len(s.Judge.Limits) != 1 {
		t.Errorf("%v: %+v", err, s.Judge)
	}
}
