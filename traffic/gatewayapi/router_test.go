// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
	"github.com/serin-dev/serin/traffic/routes"
)

// An error of the cache is an error, never a route that is not there.
func TestAnErrorIsNotTakenForAbsence(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, hooks := range map[string]interceptor.Funcs{
		"get": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		}},
		"list": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return broken
		}},
	} {
		s := newFixture(t, named(plain), everything(), hooks)
		resolved, _ := resolve.Split(s.split, s.known)
		state, err := s.router.Observe(t.Context(), traffic.Target{Split: s.split, Resolved: resolved})
		if !errors.Is(err, broken) {
			t.Errorf("%s: got %+v, %v", name, state, err)
		}
	}
}

// The cache lists in any order. What is said to the user, and what is done first, stays
// the same all the same.
func TestTheOrderOfTheCacheDoesNotMatter(t *testing.T) {
	t.Parallel()
	led := func(name string) string {
		return strings.NewReplacer("{name: website}\nspec", "{name: "+name+"}\nspec", "{name: public}", "{kind: Service, group: \"\", name: website}").Replace(route(kindHTTPRoute, plain))
	}
	backwards := false
	s := newFixture(t, parts(split(""), services, led("a"), led("b"), policy("website")), everything(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if u, ok := list.(*unstructured.UnstructuredList); ok && backwards {
				slices.Reverse(u.Items)
			}
			return err
		},
	})
	for _, name := range []string{"serin-website-1", "serin-website-2"} {
		made := routeWith()
		made.SetName(name)
		made.SetLabels(routes.Labels("website"))
		if err := s.client.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	_, state, problems := s.observe()
	backwards = true
	_, again, problemsAgain := s.observe()
	if diff := cmp.Diff(state.Objects, again.Objects); diff != "" {
		t.Errorf("objects (-forwards +backwards)\n%s", diff)
	}
	if diff := cmp.Diff(problems, problemsAgain); diff != "" {
		t.Errorf("problems (-forwards +backwards)\n%s", diff)
	}
	if len(state.Objects) != 3 || len(problems) < 3 {
		t.Errorf("too little to be in any order: %+v, %+v", state.Objects, problems)
	}
}

// Every write is for the object that was observed.
func TestAWriteFailsWhenTheRouteChangedSince(t *testing.T) {
	t.Parallel()
	s := newFixture(t, named(plain), everything(), interceptor.Funcs{})
	target, state, _ := s.observe()
	live := s.live(kindHTTPRoute, "website")
	live.SetLabels(map[string]string{"changed": "since"})
	if err := s.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(context.Context, traffic.Target, traffic.Object) error{"apply": s.router.Apply, "restore": s.router.Restore} {
		if err := write(t.Context(), target, state.Objects[0]); !apierrors.IsConflict(err) {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
	}
	if got := s.live(kindHTTPRoute, "website").GetAnnotations()[traffic.AnnotationSplit]; got != "" {
		t.Error("the route was changed all the same")
	}
}

func TestARouteOfItsOwnIsNotMadeOverAnotherOne(t *testing.T) {
	t.Parallel()
	s := newFixture(t, parts(split(""), services), everything(), interceptor.Funcs{})
	target, state, _ := s.observe()
	other := routeWith(map[string]any{"backendRefs": []any{}})
	other.SetName("serin-website-80")
	if err := s.client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := s.router.Apply(t.Context(), target, state.Objects[0]); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	_, state, _ = s.observe()
	if state.Objects[0].Condition != traffic.ObjectForeign {
		t.Errorf("the other route is %s, want %s", state.Objects[0].Condition, traffic.ObjectForeign)
	}
}

// What the split does not name any more is restored, what it was not known to want stays.
func TestWhatIsNotWantedAnyMore(t *testing.T) {
	t.Parallel()
	s := newFixture(t, named(plain), everything(), interceptor.Funcs{})
	s.enact()
	splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Routes = []splitv1.RouteReference{{Kind: "GRPCRoute", Name: "other"}} })
	_, state, _ := s.observe()
	find := func(state traffic.State) traffic.Object {
		for _, o := range state.Objects {
			if o.Name == "website" {
				return o
			}
		}
		t.Fatal("the route is not observed")
		return traffic.Object{}
	}
	if o := find(state); !o.Unwanted || !o.Changed || !o.Patched {
		t.Errorf("got %+v, want one to restore", o)
	}
	for name, target := range map[string]traffic.Target{
		"a split that is refused":    {Split: s.split, Resolved: traffic.Split{Root: "website"}},
		"a split that nothing is of": {Split: &splitv1.TrafficSplit{ObjectMeta: *s.split.ObjectMeta.DeepCopy()}},
		"a split for another router": {Split: func() *splitv1.TrafficSplit {
			o := s.split.DeepCopy()
			splitv1.EditRouting(o, func(r *splitv1.Routing) { r.Router = "nginx" })
			return o
		}()},
	} {
		state, err := s.router.Observe(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		if o := find(state); o.Unwanted || !o.Changed || state.Empty() || len(state.Problems) > 0 {
			t.Errorf("%s: got %+v, %v", name, o, state.Problems)
		}
	}
	splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Routes = []splitv1.RouteReference{{Kind: "HTTPRoute", Name: "website"}} })
	splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Router = "nginx" })
	target, state, _ := s.observe()
	if err := s.router.Restore(t.Context(), target, find(state)); err != nil {
		t.Fatal(err)
	}
	if _, state, _ = s.observe(); !state.Empty() || len(state.Objects) > 0 {
		t.Errorf("of a split for another router is left %+v", state)
	}
}

func TestRoutesOfPortsThatAreGoneAreDeleted(t *testing.T) {
	t.Parallel()
	s := newFixture(t, parts(split(""), services), everything(), interceptor.Funcs{})
	s.enact()
	for _, service := range s.known.Services {
		service.Spec.Ports[0].Port = 81
	}
	state, _ := s.enact()
	if len(state.Objects) != 1 || state.Objects[0].Name != "serin-website-81" || state.Objects[0].Condition != traffic.ObjectCurrent {
		t.Errorf("got %+v", state.Objects)
	}
}

// A user who removes the label from a route of the router's own does not get it: it is
// labelled again, and goes with the split.
func TestARouteOfItsOwnIsKnownWithoutItsLabel(t *testing.T) {
	t.Parallel()
	const name = "serin-website-80"
	for title, test := range map[string]struct {
		labels map[string]string
		own    bool
	}{
		"the label that says whose it is, is gone": {map[string]string{"app.kubernetes.io/managed-by": "serin", "app.kubernetes.io/component": "route"}, true},
		"the label is empty":                       {map[string]string{traffic.LabelProxy: "", "app.kubernetes.io/managed-by": "serin", "app.kubernetes.io/component": "route"}, true},
		"another label is gone":                    {map[string]string{traffic.LabelProxy: "website", "app.kubernetes.io/component": "route"}, true},
		"the label names another split":            {map[string]string{traffic.LabelProxy: "other", "app.kubernetes.io/managed-by": "serin", "app.kubernetes.io/component": "route"}, false},
		"another tool manages it":                  {map[string]string{"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/component": "route"}, false},
		"it has another part":                      {map[string]string{"app.kubernetes.io/managed-by": "serin", "app.kubernetes.io/component": "proxy"}, false},
		"nothing says whose it is":                 {nil, false},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, parts(split(""), services), everything(), interceptor.Funcs{})
			s.enact()
			live := s.live(kindHTTPRoute, name)
			live.SetLabels(test.labels)
			if err := s.client.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			gone := traffic.Target{Split: &splitv1.TrafficSplit{ObjectMeta: *s.split.ObjectMeta.DeepCopy()}}
			left, err := s.router.Observe(t.Context(), gone)
			if err != nil {
				t.Fatal(err)
			}
			if !test.own {
				if _, state, _ := s.observe(); state.Objects[0].Condition != traffic.ObjectForeign || !left.Empty() {
					t.Errorf("got %+v, left %+v", state.Objects, left.Objects)
				}
				return
			}
			if len(left.Objects) != 1 || left.Objects[0].Patched || left.Objects[0].Changed || left.Objects[0].Name != name {
				t.Errorf("when the split is gone, there is left %+v", left.Objects)
			}
			if _, state, _ := s.observe(); len(state.Objects) != 1 || state.Objects[0].Condition != traffic.ObjectOutdated {
				t.Errorf("observed %+v", state.Objects)
			}
			if state, _ := s.enact(); state.Objects[0].Condition != traffic.ObjectCurrent || s.live(kindHTTPRoute, name).GetLabels()[traffic.LabelProxy] != "website" {
				t.Errorf("enacted %+v", state.Objects)
			}
		})
	}
}

func TestWhichSplitARouteWasMadeFor(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"serin-web-80": "web", "serin-web-53-udp": "web", "serin-web-80-80": "web-80", "serin-web-80-udp-53": "web-80-udp", "serin-web-80-udp-53-udp": "web-80-udp",
		"serin-serin-1": "serin", "serin-80": "", "serin-web": "", "serin-web-http": "", "web-80": "", "serin-web-80-tcp": "",
	} {
		route := routeWith()
		route.SetName(name)
		route.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "serin", "app.kubernetes.io/component": "route"})
		if got := makerOf(route); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestOnlyWhatIsServedIsWatched(t *testing.T) {
	t.Parallel()
	served := everything()
	delete(served.Kinds, kindTLSPolicy)
	delete(served.Kinds, kindUDPRoute)
	router, err := New(t.Context(), fakeCache{}, nil, Options{Served: served})
	if err != nil {
		t.Fatal(err)
	}
	for _, gvk := range router.Kinds() {
		if served.Kinds[gvk.Kind] != gvk {
			t.Errorf("%s is watched", gvk)
		}
	}
	if len(router.Kinds()) != 4 {
		t.Errorf("watches %v", router.Kinds())
	}
}

func TestWhatServesRoutesIsWatchedForMirrors(t *testing.T) {
	t.Parallel()
	served := everything()
	router := &Router{options: Options{Served: served}}
	if got := router.Hosts(); !slices.Equal(got, []schema.GroupVersionKind{served.Kinds[kindGateway], served.Kinds[kindGatewayClass]}) {
		t.Errorf("watches %v", got)
	}
	delete(served.Kinds, kindGateway)
	if got := router.Hosts(); !slices.Equal(got, []schema.GroupVersionKind{served.Kinds[kindGatewayClass]}) {
		t.Errorf("where there are no gateways, watches %v", got)
	}
	for content, want := range map[string]bool{named(plain): false, mirrored(plain): true, parts(split("mirror: {service: copies, percent: 10}"), services): false} {
		if s := newFixture(t, content, everything(), interceptor.Funcs{}); router.DependsOnHosts(s.split) != want {
			t.Errorf("with %v, want %v", s.split.Annotations, want)
		}
	}
}

func TestTheSchemaSaysWhatARouteCanSay(t *testing.T) {
	t.Parallel()
	route := func(kind, rule string) string {
		return `"io.k8s.networking.gateway.v1.` + kind + `":{"properties":{"spec":{"properties":{"rules":{"items":{"properties":{` + rule + `}}}}}}}`
	}
	mirror := func(fields string) string {
		return `"filters":{"items":{"properties":{"requestMirror":{"properties":{` + fields + `}}}}}`
	}
	const sessions = `"sessionPersistence":{"type":"object"}`
	for name, test := range map[string]struct {
		schemas string
		want    Schema
	}{
		"all requests or none are mirrored":  {route(kindHTTPRoute, mirror(`"backendRef":{}`)), Schema{Sessions: map[string]bool{kindHTTPRoute: false}}},
		"a part of the requests is mirrored": {route(kindHTTPRoute, mirror(`"percent":{"type":"integer"}`)), Schema{MirrorPercent: true, Sessions: map[string]bool{kindHTTPRoute: false}}},
		"clients of both kinds stay":         {route(kindHTTPRoute, sessions) + "," + route(kindGRPCRoute, sessions), Schema{Sessions: map[string]bool{kindHTTPRoute: true, kindGRPCRoute: true}}},
		"clients of one kind stay":           {route(kindHTTPRoute, sessions) + "," + route(kindGRPCRoute, ""), Schema{Sessions: map[string]bool{kindHTTPRoute: true, kindGRPCRoute: false}}},
		"a list of routes is no route":       {route(kindHTTPRoute+"List", sessions), Schema{Sessions: map[string]bool{}}},
	} {
		schema, err := schemaOf([]byte(`{"components":{"schemas":{` + test.schemas + `}}}`))
		if diff := cmp.Diff(test.want, schema); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := schemaOf([]byte("{")); err == nil {
		t.Error("a broken document is taken for one without the field")
	}
}
