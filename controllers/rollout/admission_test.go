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
		"both are new":                {objects: []client.Object{policy(time.Second), binding(time.Second)}, recheck: admissionSettles - time.Second},
		"the binding is newer":        {objects: []client.Object{policy(time.Hour), binding(2 * time.Second)}, recheck: admissionSettles - 2*time.Second},
		"the policy is newer":         {objects: []client.Object{policy(time.Second), binding(time.Hour)}, recheck: admissionSettles - time.Second},
		"both have been there enough": {objects: []client.Object{policy(admissionSettles), binding(admissionSettles)}, inForce: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := newReconcilerOf(t, func(string) error { return nil }, test.objects...)
			r.options.Admission = Admission{Mode: AdmissionPolicies, Hold: "guard"}
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

func TestAWebhookIsReliedOnOnceTheAPIServerKnowsItsAuthority(t *testing.T) {
	now := time.Unix(1e9, 0)
	configuration := func(age time.Duration, webhook string, authority ...byte) client.Object {
		return &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "webhooks", CreationTimestamp: metav1.NewTime(now.Add(-age))},
			Webhooks:   []admissionv1.MutatingWebhook{{Name: webhook, ClientConfig: admissionv1.WebhookClientConfig{CABundle: authority}}},
		}
	}
	for name, test := range map[string]struct {
		objects []client.Object
		inForce bool
		recheck time.Duration
	}{
		"there is none":        {},
		"it has other ones":    {objects: []client.Object{configuration(time.Hour, "other", 'a')}},
		"it has no authority":  {objects: []client.Object{configuration(time.Hour, "hold")}},
		"it is new":            {objects: []client.Object{configuration(time.Second, "hold", 'a')}, recheck: admissionSettles - time.Second},
		"it has been there":    {objects: []client.Object{configuration(time.Hour, "hold", 'a')}, inForce: true},
		"a policy is no match": {objects: []client.Object{&admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hold"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := newReconcilerOf(t, func(string) error { return nil }, test.objects...)
			r.options.Admission = Admission{Mode: AdmissionWebhook, Webhooks: "webhooks", Hold: "hold"}
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
