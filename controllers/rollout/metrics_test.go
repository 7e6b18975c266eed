// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// wantMetric fails unless the Reconciler shows a line of the exposition.
func wantMetric(t *testing.T, r *Reconciler, line string) {
	t.Helper()
	text, err := testutil.CollectAndFormat(r.Metrics(), expfmt.TypeTextPlain, "serin_releases_total", "serin_rollouts")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n"+line+"\n") {
		t.Errorf("no line %s", line)
	}
}

// The first look at the fixture's Deployment finds its version deployed.
func TestWhatWasWrittenIsCountedOnce(t *testing.T) {
	r, c, _ := newReconciler(t, func(string) error { return nil })
	for range 3 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	wantMetric(t, r, `serin_releases_total{outcome="Deployed"} 1`)
	restarted := New(c, r.recorder, r.options)
	if _, err := restarted.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	wantMetric(t, restarted, `serin_releases_total{outcome="Deployed"} 0`)
	wantMetric(t, restarted, `serin_rollouts{state="Deploying"} 1`)
}

func TestWhatCouldNotBeWrittenIsNotCounted(t *testing.T) {
	r, _, _ := newReconciler(t, func(call string) error {
		if call == "update status Rollout" {
			return apierrors.NewConflict(schema.GroupResource{Resource: "rollouts"}, "website", errInjected)
		}
		return nil
	})
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	wantMetric(t, r, `serin_releases_total{outcome="Deployed"} 0`)
}

func TestARolloutThatIsGoneIsNotCountedAnyMore(t *testing.T) {
	r, c, _ := newReconciler(t, func(string) error { return nil })
	ro := &v1alpha1.Rollout{}
	if err := c.Get(t.Context(), request.NamespacedName, ro); err != nil {
		t.Fatal(err)
	}
	ro.Finalizers = nil
	r.Metrics().Show(request.NamespacedName, &v1alpha1.RolloutStatus{})
	wantMetric(t, r, `serin_rollouts{state="Other"} 1`)
	if err := c.Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), ro, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	wantMetric(t, r, `serin_rollouts{state="Other"} 0`)
}
