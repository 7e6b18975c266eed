// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
)

// disturbances are what another actor may do to an object of a release in progress.
// An act that is nil deletes the object.
var disturbances = []struct {
	what   string
	object func() client.Object
	name   string
	act    func(client.Object)
}{
	{"the root Service loses the proxies", func() client.Object { return &corev1.Service{} }, "website", func(o client.Object) {
		delete(o.(*corev1.Service).Spec.Selector, traffic.LabelProxy)
	}},
	{"the canary's Service selects everybody", func() client.Object { return &corev1.Service{} }, "website-canary", func(o client.Object) {
		o.(*corev1.Service).Spec.Selector = map[string]string{"app": "website"}
	}},
	{"the stable Service loses its mark", func() client.Object { return &corev1.Service{} }, "website-stable", func(o client.Object) {
		delete(o.GetLabels(), v1alpha1.LabelRollout)
	}},
	{"the stable Service prefers a node", func() client.Object { return &corev1.Service{} }, "website-stable", func(o client.Object) {
		o.(*corev1.Service).Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameNode)
	}},
	{"the weights are changed", func() client.Object { return &splitv1.TrafficSplit{} }, "website", func(o client.Object) {
		o.(*splitv1.TrafficSplit).Spec.Backends[1].Weight++
	}},
	{"the proxies get another strategy", func() client.Object { return &appsv1.Deployment{} }, "serin-proxy-website", func(o client.Object) {
		o.(*appsv1.Deployment).Spec.MinReadySeconds++
	}},
	{"the proxies' budget is changed", func() client.Object { return &policyv1.PodDisruptionBudget{} }, "serin-proxy-website", func(o client.Object) {
		o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable = new(intstr.FromInt32(2))
	}},
	{"the proxies' budget is deleted", func() client.Object { return &policyv1.PodDisruptionBudget{} }, "serin-proxy-website", nil},
	{"the proxies' binding is changed", func() client.Object { return &rbacv1.RoleBinding{} }, "serin-proxy", func(o client.Object) {
		o.(*rbacv1.RoleBinding).Subjects = nil
	}},
	{"the proxies' role binding is deleted", func() client.Object { return &rbacv1.RoleBinding{} }, "serin-proxy", nil},
}

var rounds = flag.Int("rounds", 1, "how often TestWhatAnotherActorChangesIsRestoredByItsWatch makes each change, for its percentiles")

// What another actor changes is restored because a watch says so: nothing else would
// within hours. How long it takes is printed: it depends on the machine.
func TestWhatAnotherActorChangesIsRestoredByItsWatch(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	p.promise.writes = restoredWithin
	var took []time.Duration
	for range *rounds {
		for _, d := range disturbances {
			took = append(took, p.disturb(d.what, d.name, d.object(), d.act))
			p.restored()
		}
	}
	slices.Sort(took)
	t.Logf("%d disturbances were restored after: p50 %s, p90 %s, longest %s", len(took),
		took[len(took)/2].Round(time.Millisecond), took[len(took)*9/10].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}

// disturb changes an object as another actor, and returns how long after that the API
// server told of its restoration.
func (p *stage) disturb(what, name string, o client.Object, act func(client.Object)) time.Duration {
	p.Helper()
	watches, err := watcher()
	if err != nil {
		p.Fatal(err)
	}
	if err := admin.Get(p.Context(), p.key(name), o); err != nil {
		p.Fatalf("%s: %v", what, err)
	}
	kind, err := admin.GroupVersionKindFor(o)
	if err != nil {
		p.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	told, err := watches.Watch(p.Context(), list, client.InNamespace(p.namespace), &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name),
	})
	if err != nil {
		p.Fatal(err)
	}
	defer told.Stop()
	before := meaning(p.T, o)
	if act == nil {
		p.delete(o)
	} else {
		edit(p.scene, name, o, act)
	}
	since, disturbed := time.Now(), false
	for limit := time.After(neverAfter); ; {
		select {
		case e := <-told.ResultChan():
			same := e.Object != nil && e.Type != watch.Deleted && equality.Semantic.DeepEqual(meaning(p.T, e.Object), before)
			if same && disturbed {
				return time.Since(since)
			}
			disturbed = disturbed || !same
		case <-limit:
			p.Fatalf("never restored: %s", what)
		}
	}
}

// meaning is what Serin makes of an object: all but what the API server adds.
func meaning(t *testing.T, o runtime.Object) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	out := map[string]any{"labels": u.GetLabels(), "annotations": u.GetAnnotations()}
	for key, value := range content {
		switch key {
		case "metadata", "status", "apiVersion", "kind":
		default:
			out[key] = value
		}
	}
	return out
}
