// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// errRestored ends a scenario whose Rollout is gone.
type errRestored struct{}

// vanish is what a user does who removes the finalizer and deletes the Rollout: its record
// is lost, and the shell goes by what is there.
func (w *world) vanish() {
	w.t.Helper()
	now := metav1.NewTime(w.now)
	w.ro.DeletionTimestamp, w.ro.Finalizers, w.ro.Status = &now, []string{v1alpha1.Finalizer}, v1alpha1.RolloutStatus{}
	w.lost = w.lost || w.fromZero // which version was stable is not known then
	w.say("user: removes the finalizer and deletes the Rollout")
	w.behind = func(o state.Observation) state.Observation {
		o.Rollout = o.Rollout.DeepCopy()
		o.Rollout.Status = Reconstruct(o)
		return o
	}
	w.until("restored", func() bool { return w.gone })
	w.run(60)
	w.checkRestored()
	panic(errRestored{})
}

// checkRestored: nothing of the release is left, and the Deployment is held on nothing
// but a version that was never stable.
func (w *world) checkRestored() {
	w.t.Helper()
	if w.isDelegated() {
		return // what moves the traffic is the CanaryRelease's
	}
	for _, rs := range w.rss {
		if rs.owner == kit.OwnerSerin {
			w.t.Errorf("ReplicaSet %s is left\n%s", rs.name, w.tail())
		}
	}
	if w.split != nil || len(w.services) > 0 || w.dep.managedBy != "" {
		w.t.Errorf("left: split %v, services %v, managed by %q\n%s", w.split, w.services, w.dep.managedBy, w.tail())
	}
	if w.ro.Spec.Services != nil {
		return // others make the pods
	}
	current := w.newest()
	running := current != nil && current.available == w.dep.replicas
	if w.dep.paused == running && w.dep.replicas > 0 {
		w.t.Errorf("paused %v, although its template runs: %v\n%s", w.dep.paused, running, w.tail())
	}
}

// TestARolloutThatGoesWithoutItsFinalizerIsRestoredBeforeAnyAction has a user remove the
// finalizer before every single action of every scenario.
func TestARolloutThatGoesWithoutItsFinalizerIsRestoredBeforeAnyAction(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			undisturbed := newWorld(t)
			s.tell(undisturbed)
			for at := 1; at <= undisturbed.acted; at++ {
				t.Run(strconv.Itoa(at), func(t *testing.T) {
					t.Parallel()
					defer func() {
						if r := recover(); r != nil && r != (errRestored{}) {
							panic(r)
						}
					}()
					w := newWorld(t)
					w.crashAt, w.crashed = at, w.vanish
					s.tell(w)
				})
			}
		})
	}
}
