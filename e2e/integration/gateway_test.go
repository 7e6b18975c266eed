// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/gatewayapi"
)

// gatewaySettle is how long the gateway of the tests, which only confirms, is given.
const gatewaySettle = 300 * time.Millisecond

// gatewayChannel is the channel of the Gateway API's definitions that is installed:
// the experimental one has every kind in every version.
const gatewayChannel = "experimental"

// gatewayRoutes are the kinds of routes that are installed.
var gatewayRoutes = []string{"HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute"}

// gatewayKinds are the real definitions of the Gateway API, of the version that this
// module requires.
func gatewayKinds(ctx context.Context) ([]*unstructured.Unstructured, error) {
	return gatewayKindsOf(ctx, gatewayChannel)
}

func gatewayKindsOf(ctx context.Context, channel string) (definitions []*unstructured.Unstructured, err error) {
	output, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return nil, fmt.Errorf("fetch the Gateway API: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		return nil, err
	}
	for _, name := range []string{"httproutes", "grpcroutes", "tcproutes", "tlsroutes", "udproutes", "backendtlspolicies"} {
		text, err := os.ReadFile(filepath.Join(module.Dir, "config", "crd", channel, "gateway.networking.k8s.io_"+name+".yaml"))
		if err != nil {
			return nil, err
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, definition); err != nil {
			return nil, err
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

// addGateway makes the router as the cluster serves it, or, for operators that are not to
// ask, as a cluster without the Gateway API does: its schemas are large.
func addGateway(ctx context.Context, t *testing.T, mgr ctrl.Manager, see sight) traffic.Router {
	t.Helper()
	served := gatewayapi.Served{}
	if see.gateway {
		served = discoverGateway(t, mgr)
	}
	if see.sessionless {
		served.Schema.Sessions = nil
	}
	router, err := gatewayapi.New(ctx, mgr.GetCache(), mgr.GetClient(), gatewayapi.Options{Served: served, Settle: gatewaySettle})
	if err != nil {
		t.Fatal(err)
	}
	return router
}

func discoverGateway(t *testing.T, mgr ctrl.Manager) gatewayapi.Served {
	t.Helper()
	asks, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		t.Fatal(err)
	}
	served, err := gatewayapi.Discover(mgr.GetRESTMapper(), asks.OpenAPIV3())
	if err != nil {
		t.Fatal(err)
	}
	return served
}

// routeOf is a route as somebody writes it.
func routeOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), u); err != nil {
		t.Fatal(err)
	}
	return u
}

const websiteRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: website}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.example.com]
  rules:
    - matches: [{path: {type: PathPrefix, value: /basket}}]
      backendRefs: [{name: basket, port: 80}]
    - timeouts: {request: 10s}
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-shop, value: "1"}]}}]
      backendRefs: [{name: website, port: 80}]
`

// confirmRoutes stands in for a gateway that takes every route of a namespace.
func (s *scene) confirmRoutes(kinds ...string) {
	s.Helper()
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gatewayKind(kind + "List"))
		s.follow(list, func(o client.Object) {
			route, ok := o.(*unstructured.Unstructured)
			if !ok {
				return
			}
			if err := s.confirm(route); err != nil && s.Context().Err() == nil {
				s.Errorf("gateway: %v", err)
			}
		})
	}
}

func gatewayKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: kind}
}

// confirm says that a route is accepted. Who changed it in the meantime is heard of.
func (s *scene) confirm(route *unstructured.Unstructured) error {
	parents, _, _ := unstructured.NestedSlice(route.Object, "spec", "parentRefs")
	var said []any
	for _, parent := range parents {
		var conditions []any
		for _, name := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
			conditions = append(conditions, map[string]any{
				"type": string(name), "status": "True", "reason": string(name), "message": "", "observedGeneration": route.GetGeneration(),
				"lastTransitionTime": "2026-01-01T00:00:00Z",
			})
		}
		said = append(said, map[string]any{"parentRef": parent, "controllerName": "example.com/gateway", "conditions": conditions})
	}
	before, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
	if route.GetDeletionTimestamp() != nil || cmp.Equal(before, said) {
		return nil
	}
	if err := unstructured.SetNestedSlice(route.Object, said, "status", "parents"); err != nil {
		return err
	}
	err := admin.Status().Update(s.Context(), route)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// route reads a route.
func (s *scene) route(kind, name string) *unstructured.Unstructured {
	s.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gatewayKind(kind))
	if err := admin.Get(s.Context(), s.key(name), u); err != nil {
		s.Fatal(err)
	}
	return u
}

// backendsIn are the names and weights of the references of each rule of a route.
func backendsIn(route *unstructured.Unstructured) string {
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	var out []string
	for _, rule := range rules {
		refs, _, _ := unstructured.NestedSlice(rule.(map[string]any), "backendRefs")
		var names []string
		for _, ref := range refs {
			r := ref.(map[string]any)
			names = append(names, fmt.Sprintf("%v=%v", r["name"], r["weight"]))
		}
		out = append(out, strings.Join(names, ","))
	}
	return strings.Join(out, " ")
}

// shop is a namespace with Services of two versions and a split for routes. Pods are
// of no interest. The objects are as the API server took them: the operator may have changed them since.
func shop(t *testing.T, change func(*splitv1.TrafficSplit), objects ...client.Object) (*scene, *operator) {
	t.Helper()
	s := newScene(t)
	for _, name := range []string{"website", "website-stable", "website-canary"} {
		o := service(name)
		o.Spec.Selector = map[string]string{"app": "website"}
		if name != "website" {
			o.Spec.Selector["version"] = name
		}
		s.create(o)
	}
	s.create(objects...)
	operator := s.startOperator(newMeasurements(), withGateway, counted)
	split := trafficSplit(90, 10)
	splitv1.SetRouting(split, splitv1.Routing{Router: gatewayapi.Name, Routes: []splitv1.RouteReference{{Kind: "HTTPRoute", Name: "website"}}})
	if change != nil {
		change(split)
	}
	s.create(split)
	return s, operator
}

// splitSays waits until the split has a condition with a reason, and returns its
// message.
func (s *scene) splitSays(condition string, status metav1.ConditionStatus, reason string) string {
	s.Helper()
	message := ""
	s.eventually(condition+" is "+string(status)+", "+reason, func(ctx context.Context) bool {
		split := &splitv1.TrafficSplit{}
		if err := admin.Get(ctx, s.key("website"), split); err != nil {
			return false
		}
		c := meta.FindStatusCondition(split.Status.Conditions, condition)
		if c == nil || c.ObservedGeneration != split.Generation {
			return false
		}
		message = c.Message
		return c.Status == status && c.Reason == reason
	})
	return message
}

func (s *scene) routed() {
	s.Helper()
	s.splitSays(splitv1.ConditionProgrammed, metav1.ConditionTrue, splitv1.ReasonProgrammed)
}

// quick waits for what a watch has to bring about, since nothing else would within hours,
// and says how long it took: that depends on the machine.
func (s *scene) quick(what string, condition func() bool) {
	s.Helper()
	begun := time.Now()
	s.eventually(what, func(context.Context) bool { return condition() })
	s.Logf("%s: took %s", what, time.Since(begun).Round(time.Millisecond))
}

// As the owner wrote it, but for what the API server fills in.
func specOf(u *unstructured.Unstructured) any {
	spec, _, _ := unstructured.NestedFieldCopy(u.Object, "spec")
	return spec
}

const (
	routedBackends = "basket=1 website-stable=9,website-canary=1"
	ownersBackends = "basket=1 website=1"
)

func TestARouteOfAGatewayIsChangedAndRestored(t *testing.T) {
	t.Parallel()
	route := routeOf(t, websiteRoute)
	s, operator := shop(t, nil, route)
	s.eventually("the route names the backends", func(context.Context) bool {
		return backendsIn(s.route("HTTPRoute", "website")) == routedBackends
	})
	s.eventually("the split names the Gateway that says nothing", func(context.Context) bool {
		return strings.Contains(s.splitSays(splitv1.ConditionProgrammed, metav1.ConditionFalse, splitv1.ReasonWaitingForRoutes), `Gateway "public" has reported nothing`)
	})
	s.confirmRoutes(gatewayRoutes...)
	s.routed()

	t.Run("at rest nothing is written", func(t *testing.T) {
		version := s.route("HTTPRoute", "website").GetResourceVersion()
		for _, team := range []string{"shop", "sales"} { // the second pass begins when the first is over
			before := operator.passes.all()["website"]
			change(s, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) { ts.Annotations["team"] = team })
			s.eventually("the operator looks again", func(context.Context) bool { return operator.passes.all()["website"] > before })
		}
		if now := s.route("HTTPRoute", "website").GetResourceVersion(); now != version {
			t.Errorf("the route was written: %s, then %s", version, now)
		}
	})
	git := routeOf(t, websiteRoute)
	git.SetNamespace(s.namespace)
	t.Run("a tool applies the route again", func(t *testing.T) {
		config := git.DeepCopy()
		if err := admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(config), client.FieldOwner("git"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		s.quick("the route names the backends again", func() bool { return backendsIn(s.route("HTTPRoute", "website")) == routedBackends })
	})
	t.Run("kubectl applies the route again", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "route.yaml")
		if err := os.WriteFile(file, []byte(websiteRoute), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), plane.Programs.Path("kubectl"), "--kubeconfig", plane.Kubeconfig, "-n", s.namespace, "apply", "-f", file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s.quick("the route names the backends again", func() bool { return backendsIn(s.route("HTTPRoute", "website")) == routedBackends })
	})
	t.Run("somebody edits the route as it is", func(*testing.T) {
		changeRoute(s, func(u *unstructured.Unstructured) {
			rules, _, _ := unstructured.NestedSlice(u.Object, "spec", "rules")
			rules[1].(map[string]any)["timeouts"] = map[string]any{"request": "20s"}
			_ = unstructured.SetNestedSlice(u.Object, rules, "spec", "rules")
		})
		s.routed()
	})
	t.Run("the operator is killed and the split deleted", func(t *testing.T) {
		operator.stop(t)
		if err := admin.Delete(t.Context(), &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "website"}}); err != nil {
			t.Fatal(err)
		}
		s.startOperator(newMeasurements(), withGateway)
		s.eventually("the split is gone", func(ctx context.Context) bool {
			return apierrors.IsNotFound(admin.Get(ctx, s.key("website"), &splitv1.TrafficSplit{}))
		})
		after := s.route("HTTPRoute", "website")
		want := route.DeepCopy()
		rules, _, _ := unstructured.NestedSlice(want.Object, "spec", "rules")
		rules[1].(map[string]any)["timeouts"] = map[string]any{"request": "20s"}
		_ = unstructured.SetNestedSlice(want.Object, rules, "spec", "rules")
		if diff := cmp.Diff(specOf(want), specOf(after)); diff != "" {
			t.Errorf("the route is not what its owner wrote, with the later edit (-want +got):\n%s", diff)
		}
		for _, name := range []string{traffic.AnnotationSplit, gatewayapi.AnnotationRecord} {
			if after.GetAnnotations()[name] != "" {
				t.Errorf("the annotation %s is left", name)
			}
		}
	})
}

func changeRoute(s *scene, f func(*unstructured.Unstructured)) {
	s.Helper()
	edit(s, "website", s.route("HTTPRoute", "website"), f)
}

// Whatever is killed in between, a route that the split does not name any more is
// restored, also when the split went without its finalizer.
func TestARouteIsRestoredWhenItsSplitIsGone(t *testing.T) {
	t.Parallel()
	route := routeOf(t, websiteRoute)
	s, operator := shop(t, nil, route)
	s.confirmRoutes(gatewayRoutes...)
	s.routed()
	operator.stop(t)
	change(s, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) { ts.Finalizers = nil })
	if err := admin.Delete(t.Context(), &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "website"}}); err != nil {
		t.Fatal(err)
	}
	s.startOperator(newMeasurements(), withGateway)
	s.eventually("the route is restored", func(context.Context) bool { return backendsIn(s.route("HTTPRoute", "website")) == ownersBackends })
	if diff := cmp.Diff(specOf(route), specOf(s.route("HTTPRoute", "website"))); diff != "" {
		t.Errorf("the route is not what its owner wrote (-want +got):\n%s", diff)
	}
}

func TestARouteThatASplitNoLongerNamesIsRestored(t *testing.T) {
	t.Parallel()
	other := routeOf(t, websiteRoute)
	other.SetName("other")
	s, _ := shop(t, nil, routeOf(t, websiteRoute), other)
	s.confirmRoutes(gatewayRoutes...)
	s.routed()
	change(s, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) {
		splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.Routes = []splitv1.RouteReference{{Kind: "HTTPRoute", Name: "other"}} })
	})
	s.eventually("one route is changed, the other restored", func(context.Context) bool {
		return backendsIn(s.route("HTTPRoute", "website")) == ownersBackends && backendsIn(s.route("HTTPRoute", "other")) == routedBackends
	})
	s.routed()
}

// The API server takes every form that a rendered route can have.
func TestRenderedRoutesAreValid(t *testing.T) {
	t.Parallel()
	const rest = "metadata: {name: website}\nspec:\n  parentRefs: [{name: public}]\n  rules: "
	for kind, rules := range map[string]string{
		"HTTPRoute": `[{matches: [{path: {type: PathPrefix, value: /a}, headers: [{name: x, value: "1"}]}, {method: GET}], backendRefs: [{name: website, port: 80, weight: 3}, {name: other, port: 80, weight: 1}]},
          {filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /z}}}], matches: [{path: {type: PathPrefix, value: /b}}], backendRefs: [{name: website, port: 80}]}]`,
		"GRPCRoute": `[{matches: [{method: {service: shop.Basket}}], backendRefs: [{name: website, port: 80}]}]`,
		"TCPRoute":  `[{backendRefs: [{name: website, port: 80}]}]`,
		"TLSRoute":  `[{backendRefs: [{name: website, port: 80}]}]`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			hostnames := ""
			if kind == "TLSRoute" {
				hostnames = "\n  hostnames: [shop.example.com]"
			}
			route := routeOf(t, "apiVersion: gateway.networking.k8s.io/v1\nkind: "+kind+"\n"+rest+rules+hostnames)
			s, _ := shop(t, func(ts *splitv1.TrafficSplit) {
				splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.Routes[0].Kind = kind })
			}, route)
			s.confirmRoutes(gatewayRoutes...)
			s.routed()
			if got := backendsIn(s.route(kind, "website")); !strings.Contains(got, "website-canary") {
				t.Errorf("the route names %s", got)
			}
			if kind != "HTTPRoute" && kind != "GRPCRoute" {
				return
			}
			group := &specsv1.HTTPRouteGroup{ObjectMeta: metav1.ObjectMeta{Name: "testers"}}
			group.Spec.Matches = []specsv1.HTTPMatch{{Name: "insiders", Headers: specsv1.Headers{Items: []specsv1.Header{{Name: "cookie", Regex: "^(.*?;)?(type=insider)(;.*)?$"}}}}}
			s.create(group)
			change(s, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) {
				ts.Spec.Matches = []splitv1.Match{{Kind: "HTTPRouteGroup", Name: "testers"}}
				splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.StickyCookie = &splitv1.StickyCookie{Name: "version", MaxAge: "1h30m"} })
			})
			s.routed()
			if got := sessionsIn(s.route(kind, "website")); !strings.Contains(got, "absoluteTimeout:1h30m0s") {
				t.Errorf("clients come back by %q", got)
			}
			change(s, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) {
				ts.Spec.Matches = nil
				ts.Spec.Backends[0].Weight, ts.Spec.Backends[1].Weight = 1, 0
				if kind == "GRPCRoute" {
					splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "website-canary", Percent: 10} })
				}
			})
			s.routed()
		})
	}
}

func TestAMeshIsGivenRoutesForTheRootService(t *testing.T) {
	t.Parallel()
	s, _ := shop(t, func(ts *splitv1.TrafficSplit) {
		splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.Routes, r.StickyCookie = nil, &splitv1.StickyCookie{Name: "version"} })
	})
	s.confirmRoutes(gatewayRoutes...)
	s.routed()
	if got, want := backendsIn(s.route("HTTPRoute", "serin-website-80")), "website-stable=9,website-canary=1"; got != want {
		t.Errorf("the route names %s, want %s", got, want)
	}
	if got, want := sessionsIn(s.route("HTTPRoute", "serin-website-80")), " 0:map[sessionName:version type:Cookie]"; got != want {
		t.Errorf("clients come back by %q, want %q", got, want)
	}
	// Somebody changes it.
	edit(s, "serin-website-80", s.route("HTTPRoute", "serin-website-80"), func(route *unstructured.Unstructured) {
		if err := unstructured.SetNestedSlice(route.Object, []any{"evil.example.com"}, "spec", "hostnames"); err != nil {
			t.Fatal(err)
		}
	})
	s.quick("the route is as it was", func() bool {
		_, found, _ := unstructured.NestedSlice(s.route("HTTPRoute", "serin-website-80").Object, "spec", "hostnames")
		return !found
	})
	if err := admin.Delete(t.Context(), s.route("HTTPRoute", "serin-website-80")); err != nil {
		t.Fatal(err)
	}
	s.quick("the route is made again", func() bool {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gatewayKind("HTTPRoute"))
		return admin.Get(t.Context(), s.key("serin-website-80"), u) == nil
	})
	s.routed()
	if err := admin.Delete(t.Context(), &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "website"}}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the route is gone", func(ctx context.Context) bool {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gatewayKind("HTTPRoute"))
		return apierrors.IsNotFound(admin.Get(ctx, s.key("serin-website-80"), u))
	})
}

// The kinds of routes that a mesh is given, by what a port speaks.
func TestAMeshIsGivenARouteOfTheKindThatEachPortSpeaks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, name := range []string{"website", "website-stable", "website-canary"} {
		o := service(name)
		o.Spec.Ports = []corev1.ServicePort{
			{Name: "http", Port: 80}, {Name: "grpc", Port: 81, AppProtocol: new("grpc")}, {Name: "tcp", Port: 82, AppProtocol: new("tcp")}, {Name: "dns", Port: 83, Protocol: corev1.ProtocolUDP},
		}
		s.create(o)
	}
	s.startOperator(newMeasurements(), withGateway)
	s.confirmRoutes(gatewayRoutes...)
	split := trafficSplit(90, 10)
	splitv1.SetRouting(split, splitv1.Routing{Router: gatewayapi.Name})
	s.create(split)
	s.routed()
	change(s, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) { ts.Spec.Backends[0].Weight, ts.Spec.Backends[1].Weight = 1, 1 })
	s.routed()
	made := map[string]string{"HTTPRoute": "serin-website-80", "GRPCRoute": "serin-website-81", "TCPRoute": "serin-website-82", "UDPRoute": "serin-website-83-udp"}
	for kind, name := range made {
		if got, want := backendsIn(s.route(kind, name)), "website-stable=1,website-canary=1"; got != want {
			t.Errorf("the %s names %s, want %s", kind, got, want)
		}
	}
	if err := admin.Delete(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	for kind, name := range made {
		s.eventually("the "+kind+" is gone", func(ctx context.Context) bool {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gatewayKind(kind))
			return apierrors.IsNotFound(admin.Get(ctx, s.key(name), u))
		})
	}
}

func TestARouteWithoutTheRootServiceIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := shop(t, nil, routeOf(t, strings.Replace(websiteRoute, "name: website, port", "name: elsewhere, port", 1)))
	message := s.splitSays(splitv1.ConditionAccepted, metav1.ConditionFalse, splitv1.ReasonUnsupported)
	if !strings.Contains(message, `HTTPRoute "website": spec.rules: none has a backendRef`) {
		t.Errorf("the split says %q", message)
	}
	// And is served when the route is mended.
	s.confirmRoutes(gatewayRoutes...)
	changeRoute(s, func(u *unstructured.Unstructured) { u.Object["spec"] = routeOf(s.T, websiteRoute).Object["spec"] })
	s.routed()
}

// A Rollout goes through a release with a user's route, and at every moment the
// callers past the gateway meet one version.
func TestARolloutIsPromotedByAGateway(t *testing.T) {
	t.Parallel()
	p := begin(t, func(c *cast) {
		c.rollout.Spec.Router = v1alpha1.RouterGatewayAPI
		c.rollout.Spec.RouteRefs = []v1alpha1.RouteReference{{Kind: "HTTPRoute", Name: "website"}}
		c.extras = append(c.extras, routeOf(t, websiteRoute))
		c.sight = append(c.sight, withGateway)
	})
	p.promise.oneVersion = true
	before := p.route("HTTPRoute", "website")
	p.confirmRoutes(gatewayRoutes...)
	p.release()
	if got, want := backendsIn(p.route("HTTPRoute", "website")), "basket=1 website-stable=4,website-canary=1"; got != want {
		t.Errorf("the route names %s, want %s", got, want)
	}
	p.finish(4)
	if diff := cmp.Diff(specOf(before), specOf(p.route("HTTPRoute", "website"))); diff != "" {
		t.Errorf("the route is not what its owner wrote (-want +got):\n%s", diff)
	}
}
