// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// gateway is a router whose routes are ConfigMaps: data.to says where requests go,
// data.taken what its data plane has accepted.
type gateway struct {
	client client.Client
}

const (
	gatewayName   = "gateway"
	gatewaySettle = 5 * time.Second
)

func (g *gateway) Name() string         { return gatewayName }
func (g *gateway) Means() traffic.Means { return traffic.MeansRoutes }
func (g *gateway) Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")}
}

func (g *gateway) Check(split traffic.Split, _ map[string]*corev1.Service) []traffic.Problem {
	return traffic.Lacking(split, gatewayName, traffic.AbilityMatch, traffic.AbilityRoutes)
}

// to is where a split sends requests.
func to(split traffic.Split) string {
	var parts []string
	for _, p := range split.Ports {
		for _, d := range p.Destinations {
			parts = append(parts, fmt.Sprintf("%s=%d", d.Service, d.Weight))
		}
	}
	return strings.Join(parts, " ")
}

func (g *gateway) Observe(ctx context.Context, target traffic.Target) (traffic.State, error) {
	state := traffic.State{Settle: gatewaySettle}
	var list corev1.ConfigMapList
	if err := g.client.List(ctx, &list, client.InNamespace(target.Split.Namespace)); err != nil {
		return state, err
	}
	named := map[string]bool{}
	for _, route := range traffic.RouteNames(target.Split) {
		named[route.Name] = true
	}
	for _, route := range list.Items {
		holder := route.Annotations[traffic.AnnotationSplit]
		if !named[route.Name] && holder != target.Split.Name {
			continue
		}
		generation, err := strconv.ParseInt(route.ResourceVersion, 10, 64)
		if err != nil {
			return state, err
		}
		o := traffic.Object{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Name: route.Name, UID: route.UID, ResourceVersion: route.ResourceVersion,
			Generation: generation, Patched: true, Changed: holder == target.Split.Name, Unwanted: !named[route.Name],
			Condition: traffic.ObjectOutdated, Confirmation: traffic.ConfirmationPending,
		}
		if o.Changed && route.Data["to"] == to(target.Resolved) || len(target.Resolved.Ports) == 0 {
			o.Condition = traffic.ObjectCurrent
		}
		if route.Data["to"] == route.Data["taken"] {
			o.Confirmation = traffic.ConfirmationGiven
		}
		state.Objects = append(state.Objects, o)
	}
	return state, nil
}

func (g *gateway) Apply(ctx context.Context, target traffic.Target, object traffic.Object) error {
	return g.change(ctx, target, object, func(route *corev1.ConfigMap) {
		metav1.SetMetaDataAnnotation(&route.ObjectMeta, traffic.AnnotationSplit, target.Split.Name)
		route.Data["to"] = to(target.Resolved)
	})
}

func (g *gateway) Restore(ctx context.Context, target traffic.Target, object traffic.Object) error {
	return g.change(ctx, target, object, func(route *corev1.ConfigMap) {
		delete(route.Annotations, traffic.AnnotationSplit)
		route.Data["to"] = "web"
	})
}

func (g *gateway) change(ctx context.Context, target traffic.Target, object traffic.Object, edit func(*corev1.ConfigMap)) error {
	route := &corev1.ConfigMap{}
	if err := g.client.Get(ctx, client.ObjectKey{Namespace: target.Split.Namespace, Name: object.Name}, route); err != nil {
		return err
	}
	base := route.DeepCopy()
	base.ResourceVersion = object.ResourceVersion
	edit(route)
	return g.client.Patch(ctx, route, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

func (w *world) route() *corev1.ConfigMap {
	w.t.Helper()
	route := &corev1.ConfigMap{}
	w.must(w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: "web"}, route))
	return route
}

func (w *world) editRoute(edit func(*corev1.ConfigMap)) {
	w.t.Helper()
	route := w.route()
	edit(route)
	w.must(w.api.Update(w.ctx(), route))
}

// take has the data plane accept what the route asks for.
func (w *world) take() {
	w.editRoute(func(route *corev1.ConfigMap) { route.Data["taken"] = route.Data["to"] })
}

// steered is a split whose requests a gateway shares.
func steered(router string) *splitv1.TrafficSplit {
	split := makeSplit(100, 0)
	split.Labels = map[string]string{v1alpha1.LabelRollout: "web"}
	splitv1.SetRouting(split, splitv1.Routing{Router: router, DefaultBackend: "web-stable"})
	if router == gatewayName {
		splitv1.EditRouting(split, func(r *splitv1.Routing) { r.Routes = []splitv1.RouteReference{{Kind: "HTTPRoute", Name: "web"}} })
	}
	return split
}

// steers makes a split live by a route without logging how.
func (w *world) steers() {
	w.t.Helper()
	kill := w.killAfter
	w.killAfter = -1
	w.create(shop()...)
	w.endpoints()
	w.create(ownersRoute(), steered(gatewayName))
	w.settle()
	w.endpoints()
	w.take()
	w.settle()
	w.clock.Step(gatewaySettle)
	w.settle()
	w.killAfter, w.writes, w.log = kill, 0, nil
	w.say("# a split is live")
}

func ownersRoute() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace, UID: "uid-route"}, Data: map[string]string{"to": "web", "taken": "web"}}
}

func (w *world) promoteByRoute() {
	w.step("all traffic is for the canary", func() {
		w.editSplit(func(s *splitv1.TrafficSplit) {
			s.Spec.Backends[0].Weight, s.Spec.Backends[1].Weight = 0, 100
			splitv1.EditRouting(s, func(r *splitv1.Routing) { r.DefaultBackend = "web-canary" })
		})
	})
	w.step("the gateway takes it and the endpoints follow", func() { w.take(); w.endpoints() })
	w.step("its proxies have followed", func() { w.clock.Step(gatewaySettle) })
}

func (w *world) leaveByRoute() {
	w.step("the split is deleted", func() { w.must(w.api.Delete(w.ctx(), w.split())) })
	w.step("the gateway takes the restored route", func() { w.take() })
	w.step("its proxies have followed", func() { w.clock.Step(gatewaySettle); w.endpoints() })
}

// routeScenarios are whole lives of a split that a gateway or mesh serves.
var routeScenarios = map[string]func(w *world){
	"a split goes live by a route, moves all traffic and is deleted": func(w *world) {
		w.step("a split is created", func() {
			w.create(shop()...)
			w.endpoints()
			w.create(ownersRoute(), steered(gatewayName))
		})
		w.step("the endpoints follow", func() { w.endpoints() })
		w.step("the gateway takes the route", func() { w.take() })
		w.step("its proxies have followed", func() { w.clock.Step(gatewaySettle) })
		w.step("the weights are changed", func() { w.weights(50, 50) })
		w.step("the gateway takes the route again", func() { w.take() })
		w.step("its proxies have followed again", func() { w.clock.Step(gatewaySettle) })
		w.promoteByRoute()
		w.leaveByRoute()
	},
	"another controller changes a route and a pinned Service": func(w *world) {
		w.steers()
		w.step("the route is applied again from Git", func() {
			w.editRoute(func(route *corev1.ConfigMap) { route.Data["to"] = "web" })
		})
		w.step("the gateway has followed", func() { w.take(); w.clock.Step(gatewaySettle) })
		w.step("the selector is reset", func() {
			s := w.service("web")
			s.Spec.Selector = map[string]string{"app": "web"}
			w.must(w.api.Update(w.ctx(), s))
			w.endpoints()
		})
		w.step("the endpoints follow", func() { w.endpoints() })
	},
	"the router is changed from a gateway to nginx": func(w *world) {
		w.steers()
		w.step("the annotation names nginx", func() {
			split := w.split()
			splitv1.SetRouting(split, splitv1.Routing{Router: "nginx"})
			w.must(w.api.Update(w.ctx(), split))
		})
		w.step("the gateway takes the restored route", func() { w.take() })
		w.step("its proxies have followed", func() { w.clock.Step(gatewaySettle); w.endpoints() })
		w.step("nginx is there", func() { w.deploy(); w.ready(); w.confirm() })
		w.step("the endpoints follow", func() { w.endpoints() })
	},
	"the router is changed from nginx to a gateway": func(w *world) {
		w.goLive()
		w.must(w.api.Create(w.ctx(), ownersRoute()))
		w.step("the annotation names the gateway", func() {
			split := w.split()
			split.Annotations = steered(gatewayName).Annotations
			w.must(w.api.Update(w.ctx(), split))
		})
		w.step("the endpoints follow", func() { w.endpoints() })
		w.step("the proxies stop", func() { w.deploy() })
		w.step("the proxies are gone", func() { w.stopped(); w.endpoints() })
		w.step("the gateway takes the route, and its proxies follow", func() { w.take(); w.clock.Step(gatewaySettle) })
	},
	"the router is changed to one that there is not": func(w *world) {
		w.steers()
		w.step("the annotation names no router", func() {
			split := w.split()
			splitv1.EditRouting(split, func(r *splitv1.Routing) { r.Router = "gatewayapi" })
			w.must(w.api.Update(w.ctx(), split))
		})
		w.step("the gateway takes the restored route", func() { w.take() })
		w.step("its proxies have followed", func() { w.clock.Step(gatewaySettle); w.endpoints() })
	},
	"an object of another owner has the name of a proxy's": func(w *world) {
		w.step("a Rollout makes a split for a mesh", func() {
			w.create(shop()...)
			w.endpoints()
			w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "serin-proxy", Namespace: namespace}}, steered("smi"))
		})
		w.step("the endpoints and the mesh follow", func() { w.endpoints(); w.clock.Step(10 * time.Second) })
	},
	"a split is deleted before its route was confirmed": func(w *world) {
		w.step("a split is created", func() {
			w.create(shop()...)
			w.endpoints()
			w.create(ownersRoute(), steered(gatewayName))
		})
		w.leaveByRoute()
	},
	"a split with a route loses its finalizer": func(w *world) {
		w.steers()
		w.say("# (the finalizer is removed by hand)")
		w.step("the split is gone at once", func() {
			split := w.split()
			split.Finalizers = nil
			w.must(w.api.Update(w.ctx(), split))
			w.must(w.api.Delete(w.ctx(), split))
		})
	},
	"a mesh serves the split of a Rollout": func(w *world) {
		w.step("a Rollout makes a split", func() {
			w.create(shop()...)
			w.endpoints()
			w.create(steered("smi"))
		})
		w.step("the endpoints follow", func() { w.endpoints() })
		w.step("the mesh has followed", func() { w.clock.Step(10 * time.Second) })
		w.step("the split is deleted", func() { w.must(w.api.Delete(w.ctx(), w.split())) })
		w.step("the mesh has followed again", func() { w.clock.Step(10 * time.Second) })
	},
}

// steeredTruly checks that a split which says that its weights are live by routes, has them live.
func (w *world) steeredTruly(split *splitv1.TrafficSplit, root *corev1.Service) {
	w.t.Helper()
	fault := func(what string) { w.t.Errorf("Programmed, but %s:\n%s", what, strings.Join(w.log, "\n")) }
	backend := w.service(traffic.DefaultBackend(split))
	if root.Spec.Selector["version"] != backend.Spec.Selector["version"] {
		fault("requests that bypass the routes meet any version")
	}
	if len(traffic.RouteNames(split)) == 0 {
		return
	}
	route := w.route()
	for _, b := range split.Spec.Backends {
		if !strings.Contains(route.Data["to"], fmt.Sprintf("%s=%d", b.Service, b.Weight)) {
			fault("the route does not say so")
		}
	}
	if route.Data["taken"] != route.Data["to"] {
		fault("the gateway has not taken the route")
	}
}

// TestNothingOfARouteIsLeft checks what every scenario of a deleted split ends in.
func TestNothingOfARouteIsLeft(t *testing.T) {
	w := newWorld(t)
	w.steers()
	w.leaveByRoute()
	if route := w.route(); route.Data["to"] != "web" || route.Annotations[traffic.AnnotationSplit] != "" {
		t.Errorf("the route is %v %v", route.Data, route.Annotations)
	}
	root := w.service("web")
	if len(root.Spec.Selector) != 1 || root.Annotations[traffic.AnnotationPin] != "" {
		t.Errorf("the root Service is %v %v", root.Spec.Selector, root.Annotations)
	}
	if err := w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: "web"}, &splitv1.TrafficSplit{}); !apierrors.IsNotFound(err) {
		t.Errorf("the split is still there: %v", err)
	}
}

func TestWhatKeepsAServiceFromBeingNarrowedIsAFaultOfItsField(t *testing.T) {
	same := map[string]string{"app": "web"}
	services := map[string]*corev1.Service{"web": makeService("web", same), "web-stable": makeService("web-stable", same)}
	split := makeSplit(100, 0)
	splitv1.SetRouting(split, splitv1.Routing{DefaultBackend: "web-missing"})
	for means, want := range map[traffic.Means]string{
		traffic.MeansRoutes:   `.defaultBackend: Service "web-missing" does not exist`,
		traffic.MeansSelector: `spec.backends: Service "web-stable" does not select some of the pods of Service "web"`,
	} {
		o := &observation{Observation: plan.Observation{Split: split, Means: means, Next: means, Root: rootOf(services["web"])}}
		if o.observePin(services); !strings.Contains(o.Pin.Problem, want) {
			t.Errorf("%s: %q", means, o.Pin.Problem)
		}
	}
}
