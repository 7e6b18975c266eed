// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/controllers/release/state"
)

// Each API server takes notice of a policy for itself, so one that is new is not relied on yet.
func TestAPolicyThatHoldsDeploymentsIsReliedOnSomeSecondsAfterItAndItsBindingAreThere(t *testing.T) {
	now := time.Unix(1e9, 0)
	aged := func(age time.Duration) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "guard", CreationTimestamp: metav1.NewTime(now.Add(-age))}
	}
	policy := func(age time.Duration) client.Object {
		return &admissionv1.MutatingAdmissionPolicy{ObjectMeta: aged(age)}
	}
	binding := func(age time.Duration) client.Object {
		return &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: aged(age)}
	}
	for name, test := range map[string]struct {
		objects []client.Object
		inForce bool
		recheck time.Duration
	}{
		"there is none":               {},
		"it has no binding":           {objects: []client.Object{policy(time.Hour)}},
		"a binding without a policy":  {objects: []client.Object{binding(time.Hour)}},
		"both are new":                {objects: []client.Object{policy(time.Second), binding(time.Second)}, recheck: guardSettles - time.Second},
		"the binding is newer":        {objects: []client.Object{policy(time.Hour), binding(2 * time.Second)}, recheck: guardSettles - 2*time.Second},
		"the policy is newer":         {objects: []client.Object{policy(time.Second), binding(time.Hour)}, recheck: guardSettles - time.Second},
		"both have been there enough": {objects: []client.Object{policy(guardSettles), binding(guardSettles)}, inForce: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := newReconcilerOf(t, func(string) error { return nil }, test.objects...)
			r.options.GuardServed, r.options.GuardPolicy = true, "guard"
			s := snapshot{Observation: state.Observation{Now: now}}
			if err := r.observeGuard(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
			if s.GuardInForce != test.inForce || s.recheck != test.recheck {
				t.Errorf("in force %v, looked at again after %s; want %v, %s", s.GuardInForce, s.recheck, test.inForce, test.recheck)
			}
		})
	}
}
