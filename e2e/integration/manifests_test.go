// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// serve has the cluster serve a kind of another tool, without its schema.
func (s *scene) serve(groupVersion, kind, plural string) {
	s.Helper()
	group, version, _ := strings.Cut(groupVersion, "/")
	s.apply(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[4]s, plural: %[3]s}
  versions:
  - name: %[2]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, version, plural, kind))
	s.eventually(kind+" is served", func(ctx context.Context) bool {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(groupVersion)
		list.SetKind(kind + "List")
		return admin.List(ctx, list) == nil
	})
}

// unstructuredOf is an empty object of a kind.
func unstructuredOf(version, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	return u
}
