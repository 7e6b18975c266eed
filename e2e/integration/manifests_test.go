// SPDX-License-Identifier: Apache-2.0

package integration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply applies manifests strictly, in the namespace of the fixture.
func (s *scene) apply(text []byte) {
	s.Helper()
	objects, err := decode(text)
	if err != nil {
		s.Fatalf("%v in:\n%s", err, text)
	}
	strict := client.WithFieldValidation(admin, metav1.FieldValidationStrict)
	for _, o := range objects {
		namespaced, err := admin.IsObjectNamespaced(o)
		if err == nil {
			if namespaced {
				o.SetNamespace(s.namespace)
			}
			err = strict.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(o), client.ForceOwnership, client.FieldOwner("manifests"))
		}
		if err != nil {
			s.Errorf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}
