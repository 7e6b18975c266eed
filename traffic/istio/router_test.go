// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// mapperOf knows Istio's kinds in the given versions.
func mapperOf(versions ...string) meta.RESTMapper {
	var all []schema.GroupVersion
	for _, v := range versions {
		all = append(all, schema.GroupVersion{Group: group, Version: v})
	}
	m := meta.NewDefaultRESTMapper(all)
	for _, gv := range all {
		m.Add(gv.WithKind(kindVirtualService), meta.RESTScopeNamespace)
		m.Add(gv.WithKind(kindRule), meta.RESTScopeNamespace)
	}
	return m
}

// fakeCache is a cache whose indexes exist already.
type fakeCache struct{ client.Reader }

func (fakeCache) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func testRouter(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (*Router, client.WithWatch) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, kind := range []string{kindVirtualService, kindRule} {
		gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
		scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(kind+"List"), &unstructured.UnstructuredList{})
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Group: group, Version: "v1"})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapperOf("v1")).WithObjects(objects...)
	served := kinds{version: "v1"}
	for _, i := range indexesOf([]schema.GroupVersionKind{served.routes(), served.rules()}) {
		builder.WithIndex(object(t, i.Kind.Kind, "", "{}"), i.Name, i.Values)
	}
	api := interceptor.NewClient(builder.Build(), funcs)
	r, err := New(t.Context(), Options{Cache: fakeCache{api}, Client: api, Mapper: mapperOf("v1", "v1beta1"), Default: true})
	if err != nil {
		t.Fatal(err)
	}
	return r, api
}

func object(tb testing.TB, kind, name, spec string) *unstructured.Unstructured {
	tb.Helper()
	u := routes.Empty(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, "shop", name)
	u.SetUID(types.UID("uid-" + name))
	u.Object["spec"] = specOf(tb, spec)
	return u
}

// shopTarget is the split of shopSplit with what it was made from, and names routes such
// as "VirtualService/web:checkout".
func shopTarget(routes string) traffic.Target {
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	if routes != "" {
		var named splitv1.Routing
		for item := range strings.SplitSeq(routes, ",") {
			kind, name, _ := strings.Cut(item, "/")
			name, section, _ := strings.Cut(name, ":")
			named.Routes = append(named.Routes, splitv1.RouteReference{Kind: kind, Name: name, Section: section})
		}
		splitv1.SetRouting(split, named)
	}
	root := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	return traffic.Target{Split: split, Root: root, Resolved: shopSplit(false)}
}

func (r *Router) must(t *testing.T, target traffic.Target) []traffic.Object {
	t.Helper()
	state, err := r.Observe(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return state.Objects
}

// apply does what the plan does on the way in, until nothing is left to do.
func (r *Router) apply(t *testing.T, target traffic.Target) {
	t.Helper()
	for _, o := range r.must(t, target) {
		if !o.Unwanted && (o.Condition == traffic.ObjectOutdated || o.Condition == traffic.ObjectAbsent && !o.Patched) {
			if err := r.Apply(t.Context(), target, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, o := range r.must(t, target) {
		if !o.Unwanted && o.Condition != traffic.ObjectCurrent {
			t.Fatalf("applied, %s %s is %s: %s", o.Kind, o.Name, o.Condition, o.Problem)
		}
	}
}

func get(t *testing.T, c client.Client, kind, name string) *unstructured.Unstructured {
	t.Helper()
	u := object(t, kind, name, "{}")
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAPatchedRouteIsWrittenAndRestored(t *testing.T) {
	theirs := object(t, kindVirtualService, "website", website)
	theirs.SetAnnotations(map[string]string{"team": "web"})
	rule := object(t, kindRule, "web", "{host: web, subsets: [{name: eu, labels: {region: eu}}]}")
	r, api := testRouter(t, interceptor.Funcs{}, theirs, rule)
	target := shopTarget("VirtualService/website")
	r.apply(t, target)
	written := get(t, api, kindVirtualService, "website")
	if written.GetAnnotations()[traffic.AnnotationSplit] != "web" || len(r.must(t, target)) != 3 {
		t.Errorf("annotations %v, objects %+v", written.GetAnnotations(), r.must(t, target))
	}
	for _, o := range r.must(t, target) {
		if o.Patched != (o.Name == "website") || o.Changed != o.Patched || o.Prepares == o.Patched {
			t.Errorf("%+v", o)
		}
	}
	// The split is gone with all that it said.
	gone := traffic.Target{Split: &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}}
	for _, o := range r.must(t, gone) {
		if o.Changed {
			if err := r.Restore(t.Context(), gone, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	restored := get(t, api, kindVirtualService, "website")
	if diff := cmp.Diff(specOf(t, website), restored.Object["spec"]); diff != "" {
		t.Errorf("restored (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "web"}, restored.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got)\n%s", diff)
	}
}

func TestWhatARouterSaysOfObjects(t *testing.T) {
	held := object(t, kindVirtualService, "website", website)
	held.SetAnnotations(map[string]string{traffic.AnnotationSplit: "other"})
	left := object(t, kindVirtualService, "website", website)
	left.SetAnnotations(map[string]string{traffic.AnnotationSplit: "web"})
	broken := object(t, kindVirtualService, "website", website)
	broken.SetAnnotations(map[string]string{traffic.AnnotationSplit: "web", annotationOriginal: "{"})
	own := object(t, kindVirtualService, "serin-route-web", "{hosts: [web]}")
	own.SetLabels(map[string]string{traffic.LabelProxy: "web"})
	going := object(t, kindVirtualService, "website", website)
	going.SetFinalizers([]string{"test/keep"})
	now := metav1.Now()
	going.SetDeletionTimestamp(&now)
	unknown := shopTarget("VirtualService/website")
	unknown.Resolved.Ports = nil
	tls := shopTarget("")
	tls.Root.Spec.Ports[0].Name = "https"
	for name, test := range map[string]struct {
		objects []client.Object
		target  traffic.Target
		want    string
	}{
		"a route that does not exist":        {nil, shopTarget("VirtualService/website"), "website Absent"},
		"a route that another split changes": {[]client.Object{held}, shopTarget("VirtualService/website"), "website Foreign"},
		"a route that is being deleted":      {[]client.Object{going}, shopTarget("VirtualService/website"), "website Terminating"},
		"a route that is to be changed":      {[]client.Object{object(t, kindVirtualService, "website", website)}, shopTarget("VirtualService/website"), "website Outdated"},
		"a route without the root Service": {
			[]client.Object{object(t, kindVirtualService, "website", "{http: []}")}, shopTarget("VirtualService/website"), `website Current, refused: VirtualService "website": has no destination`,
		},
		"a record that a user broke": {[]client.Object{broken}, shopTarget("VirtualService/website"), "website Outdated"},
		"a route that the split no longer names": {
			[]client.Object{left}, shopTarget("VirtualService/gone"), "gone Absent, website Outdated unwanted",
		},
		"nothing is known of what is wanted": {[]client.Object{left}, unknown, "website Current"},
		"a route of its own":                 {[]client.Object{own}, shopTarget(""), "serin-route-web Outdated"},
		"a route of its own that is no longer needed": {
			[]client.Object{own, left}, shopTarget("VirtualService/website"), "website Outdated, serin-route-web Current unwanted",
		},
		"one of its own and a user's for the same host": {
			[]client.Object{object(t, kindVirtualService, "theirs", "{hosts: [web.shop.svc.cluster.local], http: []}")}, shopTarget(""), `refused: VirtualService "theirs" has the host of the root Service`,
		},
		"one of its own that is there when a user makes one": {
			[]client.Object{own, object(t, kindVirtualService, "theirs", "{hosts: [web]}")}, shopTarget(""), `serin-route-web Current, refused: VirtualService "theirs" has the host of the root Service`,
		},
		"one of its own for a port that can't be split any more": {[]client.Object{own}, tls, "serin-route-web Current"},
		"one of its own and a user's at a gateway": {
			[]client.Object{object(t, kindVirtualService, "theirs", "{hosts: [web], gateways: [public]}")}, shopTarget(""), "serin-route-web Absent",
		},
		"a rule of a backend that lacks a subset": {
			[]client.Object{
				object(t, kindRule, "web", "{host: web, subsets: [{name: eu}]}"), object(t, kindRule, "stable", "{host: web-stable}"),
				object(t, kindVirtualService, "website", website),
			}, shopTarget("VirtualService/website"), `website Current, refused: DestinationRule "stable": the rule of Service "web-stable" lacks the subset "eu"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := testRouter(t, interceptor.Funcs{}, clones(test.objects)...)
			var said []string
			state, err := r.Observe(t.Context(), test.target)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range state.Objects {
				s := o.Name + " " + string(o.Condition)
				if o.Unwanted {
					s += " unwanted"
				}
				said = append(said, s)
			}
			for _, p := range state.Problems {
				said = append(said, "refused: "+p.Message)
			}
			want := strings.Split(test.want, ", ")
			ok := len(said) == len(want)
			for i := 0; ok && i < len(said); i++ {
				ok = said[i] == want[i] || strings.HasPrefix(said[i], "refused: ") && strings.Contains(said[i], strings.TrimPrefix(want[i], "refused: "))
			}
			if !ok {
				t.Errorf("said %q, want %q", said, want)
			}
		})
	}
}

func clones(objects []client.Object) []client.Object {
	var out []client.Object
	for _, o := range objects {
		out = append(out, o.DeepCopyObject().(client.Object))
	}
	return out
}

func TestAnObjectThatIsNoLongerTheOneObservedIsNotWritten(t *testing.T) {
	for name, target := range map[string]traffic.Target{"patched": shopTarget("VirtualService/website"), "own": shopTarget("")} {
		t.Run(name, func(t *testing.T) {
			r, api := testRouter(t, interceptor.Funcs{}, object(t, kindVirtualService, "website", website))
			if name == "own" {
				r.apply(t, target)
			}
			seen := r.must(t, target)[0]
			live := get(t, api, kindVirtualService, seen.Name)
			live.SetLabels(map[string]string{"touched": "yes", traffic.LabelProxy: live.GetLabels()[traffic.LabelProxy]})
			if err := unstructured.SetNestedField(live.Object, "x", "spec", "hosts"); err != nil {
				t.Fatal(err)
			}
			if err := api.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			if err := r.Apply(t.Context(), target, seen); !apierrors.IsConflict(err) {
				t.Errorf("error %v, want a conflict", err)
			}
		})
	}
}

func TestAReadThatFailsIsNotAbsence(t *testing.T) {
	broken := errors.New("the API server is away")
	for _, kind := range []string{kindVirtualService, kindRule} {
		t.Run(kind, func(t *testing.T) {
			r, _ := testRouter(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if list.GetObjectKind().GroupVersionKind().Kind == kind+"List" {
					return broken
				}
				return c.List(ctx, list, o...)
			}})
			if _, err := r.Observe(t.Context(), shopTarget("")); !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheBestServedVersionOfIstioIsUsed(t *testing.T) {
	for _, test := range []struct {
		served []string
		want   string
	}{
		{[]string{"v1", "v1beta1", "v1alpha3"}, "v1"}, {[]string{"v1alpha3", "v1beta1"}, "v1beta1"}, {nil, ""},
	} {
		t.Run(fmt.Sprint(test.served), func(t *testing.T) {
			r, err := New(t.Context(), Options{Cache: fakeCache{}, Mapper: mapperOf(test.served...)})
			if err != nil {
				t.Fatal(err)
			}
			kinds := r.Kinds()
			if test.want == "" {
				state, err := r.Observe(t.Context(), shopTarget(""))
				if len(kinds) != 0 || err != nil || len(state.Objects) != 0 {
					t.Errorf("kinds %v, state %+v, error %v", kinds, state, err)
				}
				return
			}
			if !slices.Contains(kinds, schema.GroupVersionKind{Group: group, Version: test.want, Kind: kindRule}) || len(kinds) != 2 {
				t.Errorf("kinds %v", kinds)
			}
		})
	}
}

func TestWhatIstioSaysConfirmsOrRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   traffic.Confirmation
		says   string
	}{
		"nothing":                          {"{}", traffic.ConfirmationNone, ""},
		"this generation is reconciled":    {`{observedGeneration: "3", conditions: [{type: Reconciled, status: "True"}]}`, traffic.ConfirmationGiven, ""},
		"an older one is":                  {`{conditions: [{type: Reconciled, status: "True", observedGeneration: 2, message: 1/2}]}`, traffic.ConfirmationPending, "1/2"},
		"this one is not yet":              {`{observedGeneration: 3, conditions: [{type: Reconciled, status: "False", message: 1/2 proxies}]}`, traffic.ConfirmationPending, "1/2 proxies"},
		"it does not say which generation": {`{conditions: [{type: Reconciled, status: "True"}]}`, traffic.ConfirmationNone, ""},
		"something about another matter":   {`{conditions: [{type: Other, status: "False", observedGeneration: 1}]}`, traffic.ConfirmationNone, ""},
		"the analysis finds an error":      {`{validationMessages: [{level: INFO, type: {code: IST1}}, {level: ERROR, type: {code: IST0101, name: ReferencedResourceNotFound}}]}`, traffic.ConfirmationRefused, "IST0101 ReferencedResourceNotFound"},
		"it found one in an older version": {`{observedGeneration: "2", validationMessages: [{level: ERROR, type: {code: IST0101}}]}`, traffic.ConfirmationNone, ""},
		"a warning is none":                {`{validationMessages: [{level: WARNING, type: {code: IST0101}}]}`, traffic.ConfirmationNone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := object(t, kindVirtualService, "website", website)
			u.SetGeneration(3)
			u.Object["status"] = specOf(t, test.status)
			if got, says := confirmationOf(u); got != test.want || !strings.Contains(says, test.says) {
				t.Errorf("got %q because %q, want %q", got, says, test.want)
			}
		})
	}
}

func TestARefusalNamesTheRouteByItsPlace(t *testing.T) {
	spec := specOf(t, "{http: [{route: [{destination: {host: web}}]}], tls: [{route: [{destination: {host: blog}}]}, {route: [{destination: {host: web}}]}]}")
	_, _, err := Render(spec, shopSplit(true), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "spec.tls, route 1: ") {
		t.Errorf("error %v, want one of route 1 of spec.tls", err)
	}
}

func TestAnObjectThatIsGoneSinceItWasObservedIsAConflict(t *testing.T) {
	for name, target := range map[string]traffic.Target{"patched": shopTarget("VirtualService/website"), "own": shopTarget("")} {
		t.Run(name, func(t *testing.T) {
			r, api := testRouter(t, interceptor.Funcs{}, object(t, kindVirtualService, "website", website))
			r.apply(t, target)
			seen := r.must(t, target)[0]
			if err := api.Delete(t.Context(), get(t, api, kindVirtualService, seen.Name)); err != nil {
				t.Fatal(err)
			}
			if err := r.Apply(t.Context(), target, seen); !apierrors.IsConflict(err) {
				t.Errorf("applied: error %v, want a conflict", err)
			}
			if err := r.Restore(t.Context(), target, seen); !apierrors.IsConflict(err) {
				t.Errorf("restored: error %v, want a conflict", err)
			}
			if err := api.Create(t.Context(), object(t, kindVirtualService, seen.Name, website)); err != nil {
				t.Fatal(err)
			}
			if err := r.Apply(t.Context(), target, seen); !apierrors.IsConflict(err) {
				t.Errorf("applied to another of its name: error %v, want a conflict", err)
			}
		})
	}
}
