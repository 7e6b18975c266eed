// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// TestARestoredServiceKeepsWhatKubectlApplied has the cache leave kubectl's annotation out, so
// that those of Serin's are the only ones that the reconciler sees.
func TestARestoredServiceKeepsWhatKubectlApplied(t *testing.T) {
	live := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "birds", Name: "birds", Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: "{}", plan.AnnotationOriginalSelector: `{"app":"birds"}`,
		}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "birds", traffic.LabelProxy: "birds"}},
	}
	api := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(live).Build()
	cached := &corev1.Service{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(live), cached); err != nil {
		t.Fatal(err)
	}
	if _, err := transformService(cached); err != nil {
		t.Fatal(err)
	}
	if err := (&Reconciler{Client: api}).restoreRoot(t.Context(), cached, traffic.Pin{}); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}, live.Annotations); diff != "" {
		t.Errorf("the annotations of the Service (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "birds"}, live.Spec.Selector); diff != "" {
		t.Errorf("the selector of the Service (-want +got):\n%s", diff)
	}
}
