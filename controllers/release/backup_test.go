// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// restoreBackup has all objects come back as Velero does it: without their status and their
// owners, and with pods that start. The operator is away until they are there.
func (w *world) restoreBackup() {
	w.t.Helper()
	w.say("user: restores a backup")
	w.ro.Status, w.ro.UID, w.racing, w.answered = v1alpha1.RolloutStatus{}, "restored", true, false
	w.dep.hash = "t"
	w.forget()
	for _, rs := range w.rss {
		rs.owner, rs.available, rs.age = kit.OwnerNone, 0, 0
		w.touch(rs)
	}
	if s := w.split; s != nil {
		w.split = &split{requested: s.requested, observed: -1, generation: 1, inherited: w.ro.Spec.Services != nil}
	}
	w.ro.CreationTimestamp = metav1.NewTime(w.now)
	w.deploymentController()
}

// clear does what the shell does first: it restores what the earlier Rollout of the name left.
// found says what there is of it.
func (w *world) clear(found func(*state.Observation)) {
	w.t.Helper()
	for range 600 {
		o := w.observe()
		now := metav1.NewTime(w.now)
		o.Rollout = o.Rollout.DeepCopy()
		o.Rollout.UID, o.Rollout.DeletionTimestamp, o.Rollout.Finalizers = "ro", &now, []string{v1alpha1.Finalizer}
		found(&o)
		o.Rollout.Status = Reconstruct(o)
		d := Decide(o)
		for _, a := range d.Actions {
			switch a.(type) {
			case state.RestoreDeployment: // the present Rollout does it
			case kit.RemoveFinalizer:
				return
			default:
				w.say("  - %s", a)
				if !w.apply(a) {
					w.t.Fatalf("%s: the object is another one by now", a)
				}
			}
		}
		w.passes()
	}
	w.t.Fatalf("what was left is never restored\n%s", w.tail())
}

// TestABackupOfAReleaseThatIsRestoredDoesNotRollTheNewVersionOut: it is released from its
// first step again, whatever came back of the release, and when.
func TestABackupOfAReleaseThatIsRestoredDoesNotRollTheNewVersionOut(t *testing.T) {
	all := func(*state.Observation) {}
	atStep := func(w *world, weight int32) bool {
		s := w.known().Step
		return s != nil && s.Weight == weight && s.ProgrammedAt != nil
	}
	for name, test := range map[string]struct {
		spec   func(*v1alpha1.RolloutSpec)
		remove func(*world) // what does not come back
		found  func(*state.Observation)
	}{
		"all objects": {found: all},
		"the split comes later": {found: func(o *state.Observation) {
			o.Split = state.Split{Split: kit.Split{Presence: kit.Absent}, Observed: -1}
		}},
		"no split":                    {remove: func(w *world) { w.split = nil }, found: all},
		"no Services of the versions": {remove: func(w *world) { w.services = map[string]string{} }, found: all},
		"nothing but pods":            {remove: func(w *world) { w.split, w.services = nil, map[string]string{} }, found: all},
		"a field without its manager": {remove: func(w *world) { w.dep.held = false }, found: all},
		"the router none": {spec: func(s *v1alpha1.RolloutSpec) {
			s.Router, s.Strategy.Steps[1].Weight = v1alpha1.RouterNone, 30 // that is by two pods
		}, found: all},
	} {
		for step := range 2 {
			t.Run(fmt.Sprintf("%s at step %d", name, step), func(t *testing.T) {
				w := newWorld(t)
				if test.spec != nil {
					test.spec(&w.ro.Spec)
				}
				w.ready()
				w.setTemplate("v2")
				w.until("a step", func() bool { return atStep(w, w.ro.Spec.Strategy.Steps[step].Weight) })
				canary := w.byRevision("sv2").replicas
				w.restoreBackup()
				if test.remove != nil {
					test.remove(w)
				}
				w.clear(test.found)
				w.clear(all) // by now
				var versions []string
				w.report = func() {
					if v := w.ro.Status.Stable; v != nil && !slices.Contains(versions, v.Revision) {
						versions = append(versions, v.Revision)
					}
				}
				w.until("the first step again", func() bool {
					if v2 := w.byRevision("sv2"); !w.dep.paused || v2 != nil && v2.replicas > canary {
						t.Fatalf("v2 is rolled out\n%s", w.tail())
					}
					return atStep(w, 10)
				})
				if v1 := w.byRevision("kv1"); v1 == nil || v1.available < w.dep.replicas || !slices.Equal(versions, []string{"kv1"}) {
					t.Fatalf("stable were %v, with pods %+v\n%s", versions, v1, w.tail())
				}
				w.ready()
				if !slices.Equal(versions, []string{"kv1", "sv2"}) {
					t.Errorf("stable were %v\n%s", versions, w.tail())
				}
			})
		}
	}
}

// TestABackupBetweenReleasesThatIsRestoredIsStable without a step.
func TestABackupBetweenReleasesThatIsRestoredIsStable(t *testing.T) {
	for _, guard := range []bool{true, false} {
		t.Run(fmt.Sprintf("guard %t", guard), func(t *testing.T) {
			w := newWorld(t)
			w.guard = guard
			w.ready()
			w.setTemplate("v2")
			w.ready()
			w.restoreBackup()
			w.clear(func(*state.Observation) {})
			w.report = func() {
				if w.ro.Status.Step != nil {
					t.Errorf("a release begins\n%s", w.tail())
				}
			}
			w.ready()
		})
	}
}

// TestAVersionThatWasRejectedStaysRejectedInARestoredBackup until a user retries it, or changes
// the template.
func TestAVersionThatWasRejectedStaysRejectedInARestoredBackup(t *testing.T) {
	for name, then := range map[string]func(*world){
		"another version":    func(w *world) { w.setTemplate("v3") },
		"a retry":            func(w *world) { w.control(v1alpha1.ControlRetry, "sv2") },
		"the stable version": func(w *world) { w.setTemplate("v1") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.failures["v2"] = 5
			w.ready()
			w.setTemplate("v2")
			w.until("rolled back", w.rolledBack)
			was := *w.ro.Status.Decision
			w.failures["v2"] = 0 // tried again, it would be promoted
			w.restoreBackup()
			w.clear(func(*state.Observation) {})
			for _, rs := range w.rss {
				rs.available = rs.replicas
			}
			w.byRevision("sv2").owner = kit.OwnerNone // the pods of the other one were ready first
			for range 3 {
				w.reconcile()
			}
			w.until("rolled back", w.rolledBack)
			w.run(1200)
			if d := w.ro.Status.Decision; d == nil || d.Reason != was.Reason || d.Message != was.Message {
				t.Errorf("decided %+v, and before the backup %+v", d, was)
			}
			if v2 := w.byRevision("sv2"); v2.replicas > 0 || w.ro.Status.Stable.Revision != "kv1" || !w.rolledBack() {
				t.Errorf("v2 has %d replicas, stable is %s\n%s", v2.replicas, w.ro.Status.Stable.Revision, w.tail())
			}
			then(w)
			w.ready()
		})
	}
}

// TestWhatAUserDecidedBeforeABackupIsNotDoneAgainAfterItsRestore: spec.control is restored, and with the
// status that it was done already is lost.
func TestWhatAUserDecidedBeforeABackupIsNotDoneAgainAfterItsRestore(t *testing.T) {
	ignored := func(w *world) {
		w.t.Helper()
		if c := w.ro.Status.Control; c == nil || !strings.Contains(c.Ignored, "no release of revision") {
			w.t.Errorf("the decision is %+v\n%s", c, w.tail())
		}
	}
	for _, action := range []v1alpha1.ControlAction{v1alpha1.ControlPromoteFull, v1alpha1.ControlSkip, v1alpha1.ControlAbort} {
		t.Run(string(action), func(t *testing.T) {
			w := newWorld(t)
			w.ready()
			w.setTemplate("v2")
			w.until("a step", func() bool { return w.known().Step != nil && w.known().Step.ProgrammedAt != nil })
			w.ro.Spec.Control = &v1alpha1.Control{Revision: "sv2", Action: action}
			w.restoreBackup()
			w.clear(func(*state.Observation) {})
			w.until("the first step again", func() bool { return w.known().Step != nil && w.known().Step.ProgrammedAt != nil })
			if st := w.ro.Status; st.Step.Weight != 10 || st.Step.PassedAt != nil || st.Decision != nil {
				t.Errorf("at %+v, decided %+v\n%s", st.Step, st.Decision, w.tail())
			}
			ignored(w)
		})
	}
	t.Run("Retry", func(t *testing.T) {
		w := newWorld(t)
		w.failures["v2"] = 5
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
		w.ro.Spec.Control = &v1alpha1.Control{Revision: "sv2", Action: v1alpha1.ControlRetry}
		w.restoreBackup()
		w.clear(func(*state.Observation) {})
		w.until("rolled back", w.rolledBack)
		w.run(1200)
		if v2 := w.byRevision("sv2"); v2.replicas > 0 || !w.rolledBack() {
			t.Errorf("v2 has %d replicas\n%s", v2.replicas, w.tail())
		}
		ignored(w)
	})
	t.Run("of two Services", func(t *testing.T) {
		w := newWorld(t)
		w.twoServices()
		w.behindCanary("v2", 2)
		w.untilWeight(10)
		w.ro.Spec.Control = &v1alpha1.Control{Revision: "v2", Action: v1alpha1.ControlPromoteFull}
		w.restoreBackup()
		requested := w.weights()
		w.untilWeight(50)
		if !slices.Equal(*requested, []int32{10, 0, 10, 50}) {
			t.Errorf("requested were %v\n%s", *requested, w.tail())
		}
		ignored(w)
	})
}

// promotedPair is a Rollout of two Services of which the second was promoted, and the first has so
// many pods left. It may be of another version by now, or of none.
func promotedPair(t *testing.T, left int32) *world {
	t.Helper()
	w := newWorld(t)
	w.twoServices()
	w.behindCanary("v2", 2)
	w.untilWeight(100)
	w.untilReason(v1alpha1.ReasonStable)
	w.pair.StableReady = left
	return w
}

// weights are those that the split requests from now on, each once in a row.
func (w *world) weights() *[]int32 {
	requested := &[]int32{}
	w.report = func() {
		if w.split != nil && (len(*requested) == 0 || (*requested)[len(*requested)-1] != w.split.requested.Weight) {
			*requested = append(*requested, w.split.requested.Weight)
		}
	}
	return requested
}

// TestTwoServicesOfWhichTheSecondWasPromotedKeepItsTrafficInARestoredBackup, also when the first has
// no pods any more.
func TestTwoServicesOfWhichTheSecondWasPromotedKeepItsTrafficInARestoredBackup(t *testing.T) {
	for name, test := range map[string]struct {
		left int32
		// late is after how many seconds the split comes back; -1 for never, where only the pods tell.
		late int
	}{
		"with pods of the first":          {3, 0},
		"without":                         {0, 0},
		"with a split that comes later":   {3, 50},
		"without both":                    {0, -1},
		"without pods and a split so far": {0, 50},
	} {
		t.Run(name, func(t *testing.T) {
			w := promotedPair(t, test.left)
			if test.left == 0 {
				w.pair.StableRevision = ""
			}
			w.restoreBackup()
			restored := w.split
			if test.late != 0 {
				w.split = nil
			}
			requested := w.weights()
			if test.late > 0 {
				w.run(test.late)
				w.split = restored
			}
			w.until("stable", func() bool { return w.is(v1alpha1.ReasonStable) && w.ro.Status.Stable.Service == "foobar-v2" })
			if !slices.Equal(*requested, []int32{100}) {
				t.Errorf("requested were %v\n%s", *requested, w.tail())
			}
		})
	}
}

// TestABackupOfTwoServicesInTheMiddleOfAReleaseThatIsRestoredReleasesFromTheFirstStep.
func TestABackupOfTwoServicesInTheMiddleOfAReleaseThatIsRestoredReleasesFromTheFirstStep(t *testing.T) {
	w := newWorld(t)
	w.twoServices()
	w.behindCanary("v2", 2)
	w.untilWeight(50)
	w.restoreBackup()
	requested := w.weights()
	w.untilWeight(100)
	w.untilReason(v1alpha1.ReasonStable)
	if !slices.Equal(*requested, []int32{50, 0, 10, 50, 100}) {
		t.Errorf("requested were %v\n%s", *requested, w.tail())
	}
}

// TestARolloutOfTwoServicesWithoutItsSplitDoesNotWaitForEver, nor does one that was never there before.
func TestARolloutOfTwoServicesWithoutItsSplitDoesNotWaitForEver(t *testing.T) {
	w := promotedPair(t, 3)
	w.restoreBackup()
	w.split = nil
	w.run(59)
	if w.split != nil || w.ro.Status.Stable != nil || !w.is(v1alpha1.ReasonPreparing) {
		t.Errorf("stable is %+v\n%s", w.ro.Status.Stable, w.tail())
	}
	w.untilWeight(10)
	if w.ro.Status.Stable.Service != "foobar-v1" {
		t.Errorf("stable is %+v\n%s", w.ro.Status.Stable, w.tail())
	}
	first := newWorld(t)
	first.ro.CreationTimestamp = metav1.NewTime(first.now)
	first.twoServices()
	if waited := first.now.Sub(epoch); waited > 30*time.Second {
		t.Errorf("a new one waited %s", waited)
	}
}

// TestWhatIsLeftOfAPromotedPairKeepsItsTraffic until it is back at the root Service: that no router
// has reported it says nothing.
func TestWhatIsLeftOfAPromotedPairKeepsItsTraffic(t *testing.T) {
	for observed, want := range map[int32]string{-1: "foobar-v2", 100: "foobar-v2", 60: ""} {
		w := promotedPair(t, 0)
		w.split.observed = observed
		got := ""
		if stable := Reconstruct(w.observe()).Stable; stable != nil {
			got = stable.Service
		}
		if got != want {
			t.Errorf("with weight %d observed, %q is stable, want %q", observed, got, want)
		}
	}
}

// TestOneVersionKeepsItsPodsInARestoredBackupInWhichTheNewOneHadAllOfThem: stable, or the new one where
// all its pods are ready before Serin sees it, since the Deployment controller has decided then.
func TestOneVersionKeepsItsPodsInARestoredBackupInWhichTheNewOneHadAllOfThem(t *testing.T) {
	for name, test := range map[string]struct {
		broken string // the template whose pods don't start at first
		ready  bool   // whether all pods of the new version are ready
		stays  string
	}{
		"stable starts first":                       {broken: "v2", stays: "kv1"},
		"both start at once":                        {stays: "kv1"},
		"the new version is ready":                  {ready: true, stays: "sv2"},
		"the new version is ready, and stable late": {broken: "v1", ready: true, stays: "sv2"},
	} {
		for _, replicas := range []int32{1, 2, 4} {
			t.Run(fmt.Sprintf("%s with %d replicas", name, replicas), func(t *testing.T) {
				w := newWorld(t)
				w.dep.replicas = replicas
				w.ro.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Until: v1alpha1.UntilManual}}
				w.ready()
				w.setTemplate("v2")
				w.untilReason(v1alpha1.ReasonWaitingForApproval)
				w.restoreBackup()
				w.broken[test.broken] = true
				if v2 := w.byRevision("sv2"); test.ready {
					v2.available, v2.existing = v2.replicas, v2.replicas
				}
				w.clear(func(*state.Observation) {})
				w.run(60)
				delete(w.broken, test.broken)
				w.until("a version is stable", func() bool { return w.ro.Status.Stable != nil })
				if got := w.ro.Status.Stable.Revision; got != test.stays || w.byRevision(got).available != replicas {
					t.Errorf("stable is %s\n%s", got, w.tail())
				}
				if test.stays == "kv1" {
					w.untilReason(v1alpha1.ReasonWaitingForApproval)
				} else {
					w.ready()
				}
			})
		}
	}
}

// TestNoPodIsTakenFromAVersionThatAloneAnswersInARestoredBackup, or that the Deployment controller has
// decided for: with those of stable, which that removes, none would be left.
func TestNoPodIsTakenFromAVersionThatAloneAnswersInARestoredBackup(t *testing.T) {
	for name, test := range map[string]struct {
		stable, other int32 // available pods, of four
		split, want   bool
	}{
		"both answer":                         {4, 3, false, true},
		"the other has all its pods":          {4, 4, false, false},
		"it alone answers":                    {0, 1, false, false},
		"it alone answers, behind no Service": {0, 1, true, true},
		"none answers":                        {0, 0, false, true},
	} {
		for _, gone := range []bool{false, true} {
			w := newWorld(t)
			w.ready()
			w.setTemplate("v2")
			w.untilReason(v1alpha1.ReasonHolding)
			w.restoreBackup()
			w.services = map[string]string{}
			if w.split.requested, w.split.observed, w.split.served = (strategy.Route{}), 0, w.split.generation; !test.split {
				w.split = nil
			}
			v2 := w.byRevision("sv2")
			v2.replicas, v2.existing, v2.available, v2.desired = 4, 4, test.other, 4
			w.byRevision("kv1").available = test.stable
			w.deploymentController() // it adopts the other one too
			o := w.observe()
			if gone { // what is left of a Rollout that is gone
				now := metav1.NewTime(w.now)
				o.Rollout = o.Rollout.DeepCopy()
				o.Rollout.DeletionTimestamp = &now
				o.Rollout.Status.Stable = &v1alpha1.VersionStatus{Revision: "kv1"}
			}
			empties := slices.ContainsFunc(Decide(o).Actions, func(a kit.Action) bool {
				scale, is := a.(kit.ScaleReplicaSet)
				return is && scale.Name == v2.name && scale.Replicas == 0
			})
			if empties != test.want {
				t.Errorf("%s, gone %v: its pods are taken %v", name, gone, empties)
			}
		}
	}
}
