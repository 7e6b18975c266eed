// SPDX-License-Identifier: Apache-2.0

package certificate_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/serin-dev/serin/certificate"
)

func TestASecretKeepsABundle(t *testing.T) {
	empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "serin-metrics", Namespace: "serin-system"}}
	client := fake.NewClientset(empty)
	s := certificate.Secret{Client: client.CoreV1().Secrets("serin-system"), Name: "serin-metrics"}
	b, version, err := s.Load(t.Context())
	if err != nil || len(b.Certificate) > 0 {
		t.Fatalf("%+v, %v", b, err)
	}
	want := certificate.Bundle{Certificate: []byte("c"), Key: []byte("k"), Authorities: []byte("a")}
	if err := s.Save(t.Context(), want, version); err != nil {
		t.Fatal(err)
	}
	got, _, err := s.Load(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

func TestASecretThatAnotherClientWroteIsAConflict(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("patch", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "serin-metrics", errors.New("newer"))
	})
	s := certificate.Secret{Client: client.CoreV1().Secrets("serin-system"), Name: "serin-metrics"}
	if err := s.Save(t.Context(), certificate.Bundle{}, "1"); !errors.Is(err, certificate.ErrConflict) {
		t.Errorf("got %v", err)
	}
	if _, _, err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "create an empty Secret") {
		t.Errorf("without a Secret: %v", err)
	}
}

func TestOnlyItsOwnAPIServiceIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		service string
		patched bool
	}{
		"its own":          {service: "serin-metrics", patched: true},
		"that of a mesh's": {service: "mesh-metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			found := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1alpha1.metrics.smi-spec.io"},
				"spec": map[string]any{"group": "metrics.smi-spec.io", "service": map[string]any{"name": test.service, "namespace": "serin-system"}},
			}}
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), found)
			a := certificate.APIService{Client: client, Name: found.GetName(), Service: types.NamespacedName{Namespace: "serin-system", Name: "serin-metrics"}}
			for range 2 { // the second time nothing is left to do
				if err := a.Announce(t.Context(), []byte("authorities")); err != nil {
					t.Fatal(err)
				}
			}
			patches := 0
			for _, action := range client.Actions() {
				if action.GetVerb() == "patch" {
					patches++
				}
			}
			object, err := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).Get(t.Context(), found.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			bundle, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle")
			want := ""
			if test.patched {
				want = base64.StdEncoding.EncodeToString([]byte("authorities"))
			}
			if bundle != want || (patches == 1) != test.patched {
				t.Errorf("caBundle %q after %d patches, want %q", bundle, patches, want)
			}
		})
	}
}
