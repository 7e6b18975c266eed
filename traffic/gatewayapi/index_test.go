// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// What a pass costs does not grow with the routes and policies of others.
func TestAPassLooksAtNoObjectsOfOthers(t *testing.T) {
	t.Parallel()
	lists := 0
	s := newFixture(t, parts(split(""), services, policy("website")), everything(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			if selector := (&client.ListOptions{}).ApplyOptions(opts).FieldSelector; selector == nil || selector.Empty() {
				t.Errorf("every %s of the namespace is listed", list.GetObjectKind().GroupVersionKind().Kind)
			}
			return c.List(ctx, list, opts...)
		},
	})
	s.observe()
	if lists == 0 {
		t.Error("nothing is listed at all")
	}
}

func TestTheServicesThatAnObjectIsIndexedBy(t *testing.T) {
	t.Parallel()
	ref := func(fields ...string) any {
		m := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			m[fields[i]] = fields[i+1]
		}
		return m
	}
	for name, test := range map[string]struct {
		refs    any
		parents []string
		targets []string
	}{
		"a Service":                         {[]any{ref("group", "", "kind", "Service", "name", "web")}, []string{"web"}, []string{"web"}},
		"two, one of them twice":            {[]any{ref("group", "", "kind", "Service", "name", "b"), ref("group", "", "kind", "Service", "name", "a"), ref("group", "", "kind", "Service", "name", "b")}, []string{"a", "b"}, []string{"a", "b"}},
		"a Service of the same namespace":   {[]any{ref("group", "", "kind", "Service", "name", "web", "namespace", "shop")}, []string{"web"}, []string{"web"}},
		"a Service of another namespace":    {[]any{ref("group", "", "kind", "Service", "name", "web", "namespace", "other")}, nil, []string{"web"}},
		"no group, which means the default": {[]any{ref("kind", "Service", "name", "web")}, nil, []string{"web"}},
		"a gateway":                         {[]any{ref("name", "web")}, nil, nil},
		"another kind":                      {[]any{ref("group", "", "kind", "ServiceImport", "name", "web")}, nil, nil},
		"no list":                           {"web", nil, nil},
		"a list of something else":          {[]any{"web", int64(7), nil}, nil, nil},
		"nothing":                           {nil, nil, nil},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parentRefs": test.refs, "targetRefs": test.refs}}}
		o.SetNamespace("shop")
		if got := parentsOf(o); !slices.Equal(got, test.parents) {
			t.Errorf("%s: the parents are %v, want %v", name, got, test.parents)
		}
		if got := targetsOf(o); !slices.Equal(got, test.targets) {
			t.Errorf("%s: the targets are %v, want %v", name, got, test.targets)
		}
	}
}
