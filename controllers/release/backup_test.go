// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// restoreBackup has all objects come back as Velero does it: without their status and their
// owners, and with pods that start. The operator is away until they are there.
func (w *world) restoreBackup() {
	w.t.Helper()
	w.say("user: restores a backup")
	w.ro.Status, w.ro.UID, w.racing, w.answered = v1alpha1.RolloutStatus{}, "restored", true, false
	w.forget()
	for _, rs := range w.rss {
		rs.owner, rs.available, rs.age = kit.OwnerNone, 0, 0
		w.touch(rs)
	}
	if s := w.split; s != nil {
		w.split = &split{requested: s.requested, observed: -1, generation: 1}
	}
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
		"another version": func(w *world) { w.setTemplate("v3") },
		"a retry": func(w *world) {
			w.failures["v2"] = 0
			w.control(v1alpha1.ControlRetry, "sv2")
		},
		"the stable version": func(w *world) { w.setTemplate("v1") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.failures["v2"] = 5
			w.ready()
			w.setTemplate("v2")
			w.until("rolled back", w.rolledBack)
			was := *w.ro.Status.Decision
			w.restoreBackup()
			w.clear(func(*state.Observation) {})
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
