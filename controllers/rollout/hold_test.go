// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/state"
)

func TestADeploymentIsNotUnpausedWhileItsControllerIsAtWork(t *testing.T) {
	r, c, writes := newReconciler(t, func(string) error { return nil })
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	r.options.Clock = clock
	d := &appsv1.Deployment{}
	if err := c.Get(t.Context(), request.NamespacedName, d); err != nil {
		t.Fatal(err)
	}
	unpause := func() error {
		s := snapshot{deployment: d.DeepCopy()}
		s.Now = clock.Now()
		s.deployment.Spec.Paused = true
		s.Rollout = rolloutOf(t, c)
		return r.apply(t.Context(), s, state.SetPaused{Paused: false})
	}
	written := func() bool {
		return slices.ContainsFunc(*writes, func(w string) bool { return strings.HasPrefix(w, "apply Deployment") })
	}
	for range 3 {
		result, err := shell.Retry(unpause())
		if err != nil || result.RequeueAfter != shell.ConflictPause || written() {
			t.Fatalf("result %+v, error %v, written %v: it has to wait and to say nothing", result, err, *writes)
		}
		clock.Step(shell.ConflictPause / 2)
		d.ResourceVersion += "0" // the status is written
	}
	if _, err := shell.Retry(unpause()); err != nil || written() {
		t.Fatalf("error %v, written %v", err, *writes)
	}
	clock.Step(shell.ConflictPause)
	// The fake API server does not know the version that was made up, so that the
	// write fails: that it is tried is what matters here.
	if err := unpause(); !written() {
		t.Errorf("error %v, written %v", err, *writes)
	}
}

func rolloutOf(t *testing.T, c client.Client) *v1alpha1.Rollout {
	t.Helper()
	ro := &v1alpha1.Rollout{}
	if err := c.Get(t.Context(), request.NamespacedName, ro); err != nil {
		t.Fatal(err)
	}
	return ro
}
