// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// birds is a namespace with an app in two versions, written by hand, and a split
// between them that is in effect.
func birds(t *testing.T) (*scene, *operator) {
	t.Helper()
	s := newScene(t)
	for _, version := range []string{"blue", "green"} {
		d := deployment("birds-"+version, 2)
		for _, labels := range []map[string]string{d.Spec.Selector.MatchLabels, d.Spec.Template.Labels} {
			labels["app"], labels["version"] = "birds", version
		}
		backend := service("birds-" + version)
		backend.Spec.Selector = map[string]string{"app": "birds", "version": version}
		s.create(d, backend)
	}
	s.create(service("birds"))
	s.eventually("the app is ready", func(ctx context.Context) bool { return len(s.readyEndpoints(ctx)) == 4 })
	s.serveProxies()
	o := s.startOperator(newMeasurements())
	s.create(&splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Name: "birds"},
		Spec: splitv1.TrafficSplitSpec{Service: "birds", Backends: []splitv1.Backend{
			{Service: "birds-blue", Weight: 9}, {Service: "birds-green", Weight: 1},
		}},
	})
	s.inEffect(9, 1)
	return s, o
}

func (s *scene) birdSplit() *splitv1.TrafficSplit {
	s.Helper()
	ts := &splitv1.TrafficSplit{}
	if err := admin.Get(s.Context(), s.key("birds"), ts); err != nil {
		s.Fatal(err)
	}
	return ts
}

// inEffect waits until the weights are in effect, by what the split says: then only proxies are
// endpoints of the root Service.
func (s *scene) inEffect(blue, green int32) {
	s.Helper()
	s.saidInEffect(blue, green)
	for name, proxy := range s.readyEndpoints(s.Context()) {
		if !proxy {
			s.Errorf("in effect, but %s is an endpoint of the root Service", name)
		}
	}
}

func (s *scene) saidInEffect(blue, green int32) {
	s.Helper()
	s.eventually("in effect", func(context.Context) bool {
		ts := s.birdSplit()
		c := meta.FindStatusCondition(ts.Status.Conditions, splitv1.ConditionProgrammed)
		b := ts.Status.Backends
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == ts.Generation &&
			len(b) == 2 && b[0].Weight == blue && b[1].Weight == green
	})
}

// readyEndpoints are the pods of the root Service's ready endpoints, and whether each is
// a proxy.
func (s *scene) readyEndpoints(ctx context.Context) map[string]bool {
	s.Helper()
	list := &discoveryv1.EndpointSliceList{}
	err := admin.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "birds"})
	if err != nil && ctx.Err() == nil {
		s.Errorf("list endpoints: %v", err)
	}
	ready := map[string]bool{}
	for i := range list.Items {
		maps.Copy(ready, readyIn(&list.Items[i]))
	}
	return ready
}

func readyIn(slice *discoveryv1.EndpointSlice) map[string]bool {
	ready := map[string]bool{}
	for _, e := range slice.Endpoints {
		if ptr.Deref(e.Conditions.Ready, true) && e.TargetRef != nil {
			ready[e.TargetRef.Name] = strings.HasPrefix(e.TargetRef.Name, "serin-proxy-")
		}
	}
	return ready
}

// neverEmpty watches, until it is stopped, that a Service has endpoints: at each
// change that the API server makes of them, from when the first slice that has some is seen.
func (s *scene) neverEmpty(service string) (stop func()) {
	var stopped atomic.Bool
	begun := false
	full := map[string]int{} // slices, by name
	s.watch(&discoveryv1.EndpointSliceList{}, func(e watch.Event, o client.Object) {
		slice, ok := o.(*discoveryv1.EndpointSlice)
		if !ok || slice.Labels[discoveryv1.LabelServiceName] != service || stopped.Load() {
			return
		}
		delete(full, slice.Name)
		if ready := len(readyIn(slice)); e.Type != watch.Deleted && ready > 0 {
			full[slice.Name] = ready
		}
		begun = begun || len(full) > 0
		if begun && len(full) == 0 {
			s.Errorf("the Service %s has no ready endpoint after version %s", service, slice.ResourceVersion)
		}
	})
	return func() { stopped.Store(true) }
}

func TestASplitByHand(t *testing.T) {
	t.Parallel()
	s, _ := birds(t)
	stop := s.neverEmpty("birds")
	defer stop()

	edit(s, "birds", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) {
		ts.Spec.Backends[0].Weight, ts.Spec.Backends[1].Weight = 5, 5
	})
	s.inEffect(5, 5)

	// Git applies the Service as it declares it, by force, as its tools do.
	git := coreac.Service("birds", s.namespace).WithSpec(coreac.ServiceSpec().WithSelector(map[string]string{"app": "birds"}))
	if err := admin.Apply(t.Context(), git, client.FieldOwner("git"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	s.eventually("the proxies are back in the selector", func(ctx context.Context) bool {
		return s.get(ctx, "birds", &corev1.Service{}).(*corev1.Service).Spec.Selector[traffic.LabelProxy] == "birds"
	})
	s.saidInEffect(5, 5)
	// The controller of EndpointSlices may follow the selector of Git late, and then that of Serin.
	s.eventually("only proxies are endpoints again", func(ctx context.Context) bool {
		return !slices.Contains(slices.Collect(maps.Values(s.readyEndpoints(ctx))), false)
	})

	image := s.get(t.Context(), "serin-proxy-birds", &appsv1.Deployment{}).(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image
	edit(s, "serin-proxy-birds", &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image = ptr.To[int32](3), "example.invalid/other"
	})
	s.eventually("the proxies are what they were, and as many as somebody wants", func(ctx context.Context) bool {
		d := s.get(ctx, "serin-proxy-birds", &appsv1.Deployment{}).(*appsv1.Deployment)
		return d.Spec.Template.Spec.Containers[0].Image == image && *d.Spec.Replicas == 3 && d.Status.ReadyReplicas == 3
	})
	s.inEffect(5, 5)

	if err := admin.Delete(t.Context(), s.birdSplit()); err != nil {
		t.Fatal(err)
	}
	s.eventually("the split is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(admin.Get(ctx, s.key("birds"), &splitv1.TrafficSplit{}))
	})
	root := s.get(t.Context(), "birds", &corev1.Service{}).(*corev1.Service)
	if len(root.Spec.Selector) != 1 || len(root.Annotations) != 0 {
		t.Errorf("given back with selector %v and annotations %v", root.Spec.Selector, root.Annotations)
	}
	ready := s.readyEndpoints(t.Context())
	for name, proxy := range ready {
		if proxy {
			t.Errorf("the split is gone, but proxy %s is an endpoint", name)
		}
	}
	if len(ready) != 4 {
		t.Errorf("endpoints: %v", ready)
	}
	for _, o := range []client.Object{&appsv1.Deployment{}, &corev1.ServiceAccount{}} {
		if err := admin.Get(t.Context(), s.key("serin-proxy-birds"), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T is left: %v", o, err)
		}
	}
}

func (s *scene) get(ctx context.Context, name string, o client.Object) client.Object {
	s.Helper()
	if err := admin.Get(ctx, s.key(name), o); err != nil && ctx.Err() == nil {
		s.Fatal(err)
	}
	return o
}

// Deleting in the foreground deletes what blocks the deletion of its owner before
// the owner's finalizers are done. The operator is away, so only the garbage
// collector acts.
func TestTheProxiesStayInThePathWhenTheSplitIsDeletedInTheForeground(t *testing.T) {
	t.Parallel()
	s, o := birds(t)
	o.stop(t)
	if err := admin.Delete(t.Context(), s.birdSplit(), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	s.eventually("the garbage collector has looked at the split", func(context.Context) bool {
		return !slices.Contains(s.birdSplit().Finalizers, metav1.FinalizerDeleteDependents)
	})
	if d := s.get(t.Context(), "serin-proxy-birds", &appsv1.Deployment{}); d.GetDeletionTimestamp() != nil {
		t.Error("the proxies are deleted while they are in the path")
	}
	stop := s.neverEmpty("birds")
	defer stop()
	s.startOperator(newMeasurements())
	s.eventually("the split is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(admin.Get(ctx, s.key("birds"), &splitv1.TrafficSplit{}))
	})
}

func TestDeletingTheNamespaceOfASplitFinishes(t *testing.T) {
	t.Parallel()
	s, _ := birds(t)
	s.deleteNamespace()
}

func TestProxiesMayRunWherePodSecurityIsRestricted(t *testing.T) {
	t.Parallel()
	s, _ := birds(t)
	d := s.get(t.Context(), "serin-proxy-birds", &appsv1.Deployment{}).(*appsv1.Deployment)
	spec := d.Spec.Template.Spec
	spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	if err := restricted(t, spec.ServiceAccountName).admits(spec); err != nil {
		t.Error(err)
	}
}
