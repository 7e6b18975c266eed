// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// migratedTool is what a page leads away from, and back to. Its controller is not there; what
// it leaves is: objects that own the pods, and a Service that selects them.
type migratedTool struct {
	page, version, kind, spec string
	// folder has the tool's object, as the page calls it.
	folder string
	// serve has the cluster serve its kind.
	serve func(*scene)
	// leave makes what the tool has made of its object.
	leave func(*reader, *unstructured.Unstructured)
	// returns does what the tool does when its object is there again.
	returns func(*reader, *unstructured.Unstructured)
	// deletes is the command after which the ReplicaSet of its object is deleted; "" for none. The garbage collector
	// learns of a new kind within half a minute.
	deletes string
}

func TestTheSwitchFromArgoRolloutsAndBackKeepsEndpoints(t *testing.T) {
	switchesAndBack(t, migratedTool{
		"how-to/migrate-from-argo-rollouts.md", "argoproj.io/v1alpha1", "Rollout", argoSpec, "argo",
		(*scene).serveArgoRollouts, (*reader).asArgoLeaves, (*reader).asArgoReturns, "kubectl delete rollouts.argoproj.io/website",
	})
}

func TestTheSwitchFromFlaggerAndBackKeepsEndpoints(t *testing.T) {
	t.Parallel()
	const version, kind = "flagger.app/v1beta1", "Canary"
	switchesAndBack(t, migratedTool{
		"how-to/migrate-from-flagger.md", version, kind, flaggerSpec, "flagger",
		func(s *scene) { s.serve(version, kind, "canaries") }, (*reader).asFlaggerLeaves, (*reader).asFlaggerReturns, "",
	})
}

func switchesAndBack(t *testing.T, tool migratedTool) {
	t.Helper()
	r := newReader(t, nil)
	r.functions = pathWithPlugin(t, nil)
	tool.serve(r.scene)
	r.saveTool(tool)
	r.run("kubectl apply -f " + tool.folder)
	owner := unstructuredOf(tool.version, tool.kind)
	r.get(t.Context(), "website", owner)
	tool.leave(r, owner)
	r.endpoints(2)
	defer r.neverEmpty("website")()
	sections := page(t, tool.page)
	if len(sections) != 3 {
		t.Fatalf("the page has %d sections with commands, want those that prepare, switch and switch back", len(sections))
	}
	r.switches(tool, sections[0])
	r.switches(tool, sections[1])
	r.endpoints(2)
	if d := r.deployment(); d.Status.ReadyReplicas != 2 {
		t.Errorf("the Deployment is %+v", d.Status)
	}
	r.switches(tool, sections[2])
	r.endpoints(2)
}

// saveTool writes the tool's object into the folder of the page.
func (r *reader) saveTool(tool migratedTool) {
	r.Helper()
	folder := filepath.Join(r.folder, tool.folder)
	if err := os.Mkdir(folder, 0o700); err != nil {
		r.Fatal(err)
	}
	object := fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: website}\nspec:\n%s", tool.version, tool.kind, tool.spec)
	if err := os.WriteFile(filepath.Join(folder, "website.yaml"), object, 0o600); err != nil {
		r.Fatal(err)
	}
}

// switches runs the commands of a section one by one. The tool acts where it gets its object back.
func (r *reader) switches(tool migratedTool, s section) {
	r.Helper()
	for _, b := range s.blocks {
		if b.kind == "text" {
			if got, want := normal(r.printed), normal(b.text); got != want {
				r.Errorf("line %d: the page shows\n%s\nand kubectl\n%s", b.line, want, got)
			}
		}
		if b.kind != "sh" {
			continue
		}
		r.printed = ""
		for command := range strings.Lines(b.text) {
			r.printed += r.run(command)
			switch strings.TrimSpace(command) {
			case tool.deletes:
				rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "website-" + argoHash}}
				if err := client.IgnoreNotFound(admin.Delete(r.Context(), rs)); err != nil {
					r.Fatal(err)
				}
			case "kubectl apply -f " + tool.folder + "/":
				owner := unstructuredOf(tool.version, tool.kind)
				r.get(r.Context(), "website", owner)
				tool.returns(r, owner)
			}
		}
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

// Argo Rollouts marks the pods of a version with a label, by which its Service selects.
const argoHash, argoKey = "5d8f7c9b6", "rollouts-pod-template-hash"

// asArgoLeaves makes the ReplicaSet of a Rollout, and a Service that selects it alone.
func (r *reader) asArgoLeaves(owner *unstructured.Unstructured) {
	svc := service("website")
	svc.Spec.Selector[argoKey] = argoHash
	r.create(argoPods(owner), svc)
}

// argoPods is the ReplicaSet that Argo Rollouts makes for a Rollout.
func argoPods(owner *unstructured.Unstructured) *appsv1.ReplicaSet {
	d := deployment("website", 2)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "website-" + argoHash, Labels: map[string]string{"app": "website", argoKey: argoHash}}}
	rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	rs.Spec = appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}
	rs.Spec.Selector.MatchLabels = map[string]string{"app": "website", argoKey: argoHash}
	rs.Spec.Template.Labels = map[string]string{"app": "website", argoKey: argoHash}
	return rs
}

// asArgoReturns runs the pods of the Rollout beside those of the Deployment, and has the Service
// select them when they are available.
func (r *reader) asArgoReturns(owner *unstructured.Unstructured) {
	r.create(argoPods(owner))
	r.endpoints(4)
	r.selects(map[string]string{"app": "website", argoKey: argoHash})
	r.phase(owner, "Healthy")
}

// asFlaggerLeaves makes the primary of a Canary, the target without pods, and the Services.
func (r *reader) asFlaggerLeaves(owner *unstructured.Unstructured) {
	svc := service("website")
	svc.Spec.Selector["app"] = "website-primary"
	svc.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	r.create(append(flaggerObjects(owner), svc, deployment("website", 0))...)
}

// flaggerObjects are what Flagger makes for a Canary, without the Service that clients call.
func flaggerObjects(owner *unstructured.Unstructured) []client.Object {
	objects := []client.Object{deployment("website-primary", 2), service("website-primary")}
	for _, o := range objects {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	return objects
}

// asFlaggerReturns copies the Deployment, has the Service select the copy when it is ready, and
// then scales the Deployment down.
func (r *reader) asFlaggerReturns(owner *unstructured.Unstructured) {
	r.create(flaggerObjects(owner)...)
	r.eventually("the primary is ready", func(ctx context.Context) bool {
		primary := &appsv1.Deployment{}
		return admin.Get(ctx, r.key("website-primary"), primary) == nil && primary.Status.ReadyReplicas == 2
	})
	r.selects(map[string]string{"app": "website-primary"})
	r.run("kubectl scale deployment/website --replicas=0")
	r.phase(owner, "Initialized")
}

// selects has the Service select other pods.
func (r *reader) selects(labels map[string]string) {
	r.Helper()
	svc := &corev1.Service{}
	r.get(r.Context(), "website", svc)
	svc.Spec.Selector = labels
	if err := admin.Update(r.Context(), svc); err != nil {
		r.Fatal(err)
	}
}

// phase writes the state of a tool's object.
func (r *reader) phase(o *unstructured.Unstructured, phase string) {
	r.Helper()
	was := client.MergeFrom(o.DeepCopy())
	o.Object["status"] = map[string]any{"phase": phase}
	if err := admin.Patch(r.Context(), o, was); err != nil {
		r.Fatal(err)
	}
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
