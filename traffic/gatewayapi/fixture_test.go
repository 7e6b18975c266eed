// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
	"github.com/serin-dev/serin/traffic/routes"
)

// fixture is objects of one namespace, and the router that sees them.
type fixture struct {
	*testing.T
	split  *splitv1.TrafficSplit
	known  resolve.Known
	routes []*unstructured.Unstructured
	client client.WithWatch
	router *Router
}

// everything is a cluster that serves all that this package knows.
func everything() Served {
	served := Served{Kinds: map[string]schema.GroupVersionKind{}, Schema: Schema{MirrorPercent: true, Sessions: map[string]bool{kindHTTPRoute: true, kindGRPCRoute: true}}}
	for kind, versions := range routeVersions {
		served.Kinds[kind] = schema.GroupVersionKind{Group: Group, Version: versions[0], Kind: kind}
	}
	return served
}

// fakeCache is a cache whose indexes exist already.
type fakeCache struct{ client.Reader }

func (fakeCache) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// newFixture reads a fixture.
func newFixture(t *testing.T, content string, served Served, hooks interceptor.Funcs) *fixture {
	t.Helper()
	s := &fixture{T: t, known: resolve.Known{Services: map[string]*corev1.Service{}, Groups: map[string]*specsv1.HTTPRouteGroup{}}}
	var live []client.Object
	for document := range strings.SplitSeq(content, "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetKind() != kindGatewayClass {
			u.SetNamespace("shop")
		}
		if slices.Contains(append(routeKinds, kindTLSPolicy, kindGateway, kindGatewayClass), u.GetKind()) {
			live = append(live, u)
			if slices.Contains(routeKinds, u.GetKind()) {
				s.routes = append(s.routes, u.DeepCopy())
			}
			continue
		}
		s.take(u)
	}
	builder := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(live...).WithInterceptorFuncs(hooks)
	for _, i := range (&Router{options: Options{Served: served}}).indexes() {
		builder.WithIndex(routes.Empty(i.Kind, "", ""), i.Name, i.Values)
	}
	s.client = builder.Build()
	router, err := New(t.Context(), fakeCache{s.client}, s.client, Options{Served: served, Default: true})
	if err != nil {
		t.Fatal(err)
	}
	s.router = router
	return s
}

// take keeps an object that is no route.
func (s *fixture) take(u *unstructured.Unstructured) {
	s.Helper()
	into := func(object any) {
		s.Helper()
		text, err := u.MarshalJSON()
		if err != nil {
			s.Fatal(err)
		}
		if err := json.Unmarshal(text, object); err != nil {
			s.Fatal(err)
		}
	}
	switch u.GetKind() {
	case "TrafficSplit":
		s.split = &splitv1.TrafficSplit{}
		into(s.split)
	case "Service":
		service := &corev1.Service{}
		into(service)
		if service.Spec.Selector == nil {
			service.Spec.Selector = map[string]string{"app": "website", "version": service.Name}
		}
		service.Spec.ClusterIP = "10.0.0.1"
		s.known.Services[service.Name] = service
	case "HTTPRouteGroup":
		group := &specsv1.HTTPRouteGroup{}
		into(group)
		s.known.Groups[group.Name] = group
	default:
		s.Fatalf("the scheme has no kind %q", u.GetKind())
	}
}

// observe resolves the split and looks, as the controller does.
func (s *fixture) observe() (traffic.Target, traffic.State, []traffic.Problem) {
	s.Helper()
	resolved, problems := resolve.Split(s.split, s.known)
	target := traffic.Target{Split: s.split, Root: s.known.Services[resolved.Root], Resolved: resolved}
	state, err := s.router.Observe(s.Context(), target)
	if err != nil {
		s.Fatal(err)
	}
	if !traffic.Refused(problems) {
		problems = slices.Concat(s.router.Check(resolved, s.known.Services), state.Problems, problems)
	}
	return target, state, problems
}

// enact does what the controller would do now, and looks again.
func (s *fixture) enact() (traffic.State, []traffic.Problem) {
	s.Helper()
	target, state, problems := s.observe()
	if traffic.Refused(problems) {
		return state, problems
	}
	for _, o := range state.Objects {
		var err error
		switch {
		case o.Unwanted && o.Changed:
			err = s.router.Restore(s.Context(), target, o)
		case o.Unwanted && !o.Patched:
			err = s.client.Delete(s.Context(), s.live(o.Kind, o.Name))
		case o.Condition == traffic.ObjectOutdated, o.Condition == traffic.ObjectAbsent && !o.Patched:
			err = s.router.Apply(s.Context(), target, o)
		}
		if err != nil {
			s.Fatalf("%s %s: %v", o.Kind, o.Name, err)
		}
	}
	_, state, problems = s.observe()
	return state, problems
}

// live reads a route.
func (s *fixture) live(kind, name string) *unstructured.Unstructured {
	s.Helper()
	u, err := s.router.objects.Get(s.Context(), s.router.options.Served.Kinds[kind], "shop", name)
	if err != nil || u == nil {
		s.Fatalf("%s %s: %v, %v", kind, name, u, err)
	}
	return u
}
