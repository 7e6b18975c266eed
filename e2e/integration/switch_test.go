// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The controllers of the other tools are not there; what they leave is: objects that own
// the pods, and a Service that selects them.
func TestTheSwitchFromOtherToolsKeepsEndpoints(t *testing.T) {
	t.Parallel()
	for tool, test := range map[string]struct {
		page, version, kind, plural, spec string
		leave                             func(*reader, *unstructured.Unstructured)
	}{
		"Argo Rollouts": {"how-to/migrate-from-argo-rollouts.md", "argoproj.io/v1alpha1", "Rollout", "rollouts", argoSpec, (*reader).asArgoLeaves},
		"Flagger":       {"how-to/migrate-from-flagger.md", "flagger.app/v1beta1", "Canary", "canaries", flaggerSpec, (*reader).asFlaggerLeaves},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, nil)
			r.serve(test.version, test.kind, test.plural)
			r.apply(fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: website}\nspec:\n%s", test.version, test.kind, test.spec))
			owner := unstructuredOf(test.version, test.kind)
			r.get(t.Context(), "website", owner)
			test.leave(r, owner)
			r.endpoints(2)
			defer r.neverEmpty("website")()
			r.does("migrate --to " + filepath.Join(r.folder, "serin"))
			blocks := 0
			for _, section := range page(t, test.page) {
				for _, b := range section.blocks {
					if b.kind == "sh" {
						r.run(b.text)
						blocks++
					}
				}
			}
			if blocks < 3 {
				t.Errorf("the page has %d blocks of commands", blocks)
			}
			r.endpoints(2)
			if d := r.deployment(); d.Status.ReadyReplicas != 2 {
				t.Errorf("the Deployment is %+v", d.Status)
			}
		})
	}
}

const (
	argoSpec = `
  replicas: 2
  selector: {matchLabels: {app: website}}
  template:
    metadata: {labels: {app: website}}
    spec: {containers: [{name: app, image: "example.invalid/app:v1", ports: [{name: http, containerPort: 8080}]}]}
  strategy: {canary: {stableService: website, steps: [{setWeight: 10}, {pause: {duration: 1m}}]}}
`
	flaggerSpec = `
  provider: kubernetes
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: website}
  service: {port: 80, targetPort: http}
  analysis: {interval: 1m, threshold: 2, iterations: 2}
`
)

// asArgoLeaves makes the ReplicaSet of a Rollout, and a Service that selects it alone.
func (r *reader) asArgoLeaves(owner *unstructured.Unstructured) {
	const hash, key = "5d8f7c9b6", "rollouts-pod-template-hash"
	d := deployment("website", 2)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "website-" + hash, Labels: map[string]string{"app": "website", key: hash}}}
	rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	rs.Spec = appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}
	rs.Spec.Selector.MatchLabels = map[string]string{"app": "website", key: hash}
	rs.Spec.Template.Labels = map[string]string{"app": "website", key: hash}
	svc := service("website")
	svc.Spec.Selector[key] = hash
	r.create(rs, svc)
}

// asFlaggerLeaves makes the primary of a Canary, the target without pods, and the Services.
func (r *reader) asFlaggerLeaves(owner *unstructured.Unstructured) {
	primary := deployment("website-primary", 2)
	svc, other := service("website"), service("website-primary")
	svc.Spec.Selector["app"] = "website-primary"
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	for _, o := range []client.Object{primary, svc, other} {
		o.SetOwnerReferences(owned)
		r.create(o)
	}
	r.create(deployment("website", 0))
}

// endpoints waits until the Service has so many ready endpoints.
func (r *reader) endpoints(n int) {
	r.Helper()
	r.eventually("the Service has as many endpoints", func(ctx context.Context) bool {
		var list discoveryv1.EndpointSliceList
		err := admin.List(ctx, &list, client.InNamespace(r.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "website"})
		ready := 0
		for i := range list.Items {
			ready += len(readyIn(&list.Items[i]))
		}
		return err == nil && ready == n
	})
}
