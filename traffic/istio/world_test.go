// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

func TestOnlyWhatMattersToASplitIsRead(t *testing.T) {
	objects := []client.Object{
		object(t, kindVirtualService, "website", website), object(t, kindVirtualService, "theirs", "{hosts: [web.shop.svc.cluster.local]}"),
		object(t, kindRule, "web", "{host: web}"), object(t, kindRule, "stable", "{host: web-stable.shop}"),
	}
	for i := range 20 {
		app := fmt.Sprintf("app%d", i)
		route, rule := object(t, kindVirtualService, app, "{hosts: [x]}"), object(t, kindRule, app, "{host: x}")
		for _, u := range []*unstructured.Unstructured{route, rule} {
			u.SetLabels(routes.Labels(app))
			objects = append(objects, u)
		}
	}
	for name, test := range map[string]struct {
		routes, router string
		want           []string
	}{
		"a split that names a route":  {"VirtualService/website", Name, []string{"stable", "web", "website"}},
		"a split that names none":     {"", Name, []string{"stable", "theirs", "web"}},
		"a split of another router":   {"VirtualService/website", "nginx", nil},
		"one of another, without any": {"", "nginx", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var read []string
			r, _ := testRouter(t, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
					err := c.List(ctx, list, o...)
					if found, ok := list.(*unstructured.UnstructuredList); ok {
						for _, u := range found.Items {
							read = append(read, u.GetName())
						}
					}
					return err
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					read = append(read, key.Name)
					return c.Get(ctx, key, o, options...)
				},
			}, clones(objects)...)
			target := shopTarget(test.routes)
			splitv1.EditRouting(target.Split, func(r *splitv1.Routing) { r.Router = test.router })
			r.must(t, target)
			slices.Sort(read)
			if diff := cmp.Diff(test.want, slices.Compact(read)); diff != "" {
				t.Errorf("read (-want +got)\n%s", diff)
			}
		})
	}
}

func TestASplitOfAnotherRouterIsToldOnlyWhatIstioLeft(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"nothing": {},
		"a user's objects for the same Services": {objects: []client.Object{
			object(t, kindVirtualService, "website", website), object(t, kindVirtualService, "theirs", "{hosts: [web]}"),
			object(t, kindRule, "web", "{host: web, subsets: [{name: eu}]}"), object(t, kindRule, "stable", "{host: web-stable}"),
		}},
		"a user's object with the name of one of its own": {objects: []client.Object{object(t, kindVirtualService, "serin-route-web", website)}},
	} {
		for route, target := range map[string]traffic.Target{"a route": shopTarget("VirtualService/website"), "none": shopTarget("")} {
			t.Run(name+", naming "+route, func(t *testing.T) {
				splitv1.EditRouting(target.Split, func(r *splitv1.Routing) { r.Router = "nginx" })
				r, _ := testRouter(t, interceptor.Funcs{}, clones(test.objects)...)
				state, err := r.Observe(t.Context(), target)
				if err != nil || !state.Empty() || len(state.Objects)+len(state.Problems) > 0 {
					t.Errorf("state %+v, error %v", state, err)
				}
			})
		}
	}
}

func TestWhatASplitThatMovesToAnotherRouterLeavesIsRestored(t *testing.T) {
	for name, target := range map[string]traffic.Target{"patched": shopTarget("VirtualService/website"), "own": shopTarget("")} {
		t.Run(name, func(t *testing.T) {
			r, _ := testRouter(t, interceptor.Funcs{}, object(t, kindVirtualService, "website", website), object(t, kindRule, "web", "{host: web}"))
			r.apply(t, target)
			splitv1.EditRouting(target.Split, func(r *splitv1.Routing) { r.Router = "nginx" })
			left := r.must(t, target)
			for _, o := range left {
				if !o.Unwanted || o.Patched != o.Changed || o.Prepares != (o.Kind == kindRule) {
					t.Errorf("%+v", o)
				}
			}
			if len(left) != 3 {
				t.Errorf("objects %+v, want two rules and a VirtualService", left)
			}
		})
	}
}
