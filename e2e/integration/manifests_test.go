// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
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

// serveArgoRollouts has the cluster serve the kind Rollout of Argo Rollouts until the test ends. Kubectl takes that for
// what a command calls a rollout, so the test must not be parallel to others.
func (s *scene) serveArgoRollouts() {
	s.Helper()
	const version, kind, plural = "argoproj.io/v1alpha1", "Rollout", "rollouts"
	s.serve(version, kind, plural)
	kinds, err := discovery.NewDiscoveryClientForConfig(plane.Config)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		ctx := context.WithoutCancel(s.Context())
		definition := unstructuredOf("apiextensions.k8s.io/v1", "CustomResourceDefinition")
		definition.SetName(plural + ".argoproj.io")
		if err := admin.Delete(ctx, definition); err != nil {
			s.Fatal(err)
		}
		if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, neverAfter, true, func(context.Context) (bool, error) {
			_, served, err := kinds.ServerGroupsAndResources()
			return err == nil && !slices.ContainsFunc(served, func(of *metav1.APIResourceList) bool {
				return of.GroupVersion == version && slices.ContainsFunc(of.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
			}), nil
		}); err != nil {
			s.Errorf("the kind is still served: %v", err)
		}
	})
}

// unstructuredOf is an empty object of a kind.
func unstructuredOf(version, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	return u
}
