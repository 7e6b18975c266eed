// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// asked is true for a split that asks for this router.
func (r *Router) asked(split *splitv1.TrafficSplit) bool {
	name := traffic.RouterName(split, "")
	return name == Name || name == "" && r.options.Default
}

// world reads what matters to a split and nothing else: what the router made or changed
// for it and, if the split asks for this router, what it names and what is for the same
// Services.
func (r *Router) world(ctx context.Context, target traffic.Target) (world, error) {
	w := world{kinds: r.kinds, asked: r.asked(target.Split)}
	routes := reader{router: r, gvk: r.kinds.routes(), namespace: target.Split.Namespace}
	rules := reader{router: r, gvk: r.kinds.rules(), namespace: target.Split.Namespace}
	left := short(target.Split.Name)
	routes.list(ctx, indexSplit, left)
	rules.list(ctx, indexSplit, left)
	if w.asked {
		named := namedRoutes(target.Split)
		for _, n := range named {
			routes.get(ctx, n.name)
		}
		if len(named) == 0 {
			routes.list(ctx, indexHost, target.Resolved.Root)
		}
		for _, service := range append(sentTo(target.Resolved), target.Resolved.Root) {
			rules.list(ctx, indexHost, service)
		}
	}
	if routes.err != nil {
		return world{}, routes.err
	}
	w.routes, w.rules = routes.sorted(), rules.sorted()
	return w, rules.err
}

// reader gathers objects of one kind, each of them once. After an error it reads no more.
type reader struct {
	router    *Router
	gvk       schema.GroupVersionKind
	namespace string
	found     []unstructured.Unstructured
	err       error
}

// list adds the objects with a value of an index; none for an empty value, of which
// nothing is known. They are shared with the cache.
func (r *reader) list(ctx context.Context, index, value string) {
	if r.err != nil || value == "" {
		return
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(r.gvk.GroupVersion().WithKind(r.gvk.Kind + "List"))
	err := r.router.options.Cache.List(ctx, list, client.InNamespace(r.namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)
	if err != nil {
		r.err = fmt.Errorf("list %ss: %w", r.gvk.Kind, err)
		return
	}
	for _, u := range list.Items {
		r.add(u)
	}
}

// get adds the object of a name, if there is one.
func (r *reader) get(ctx context.Context, name string) {
	if r.err != nil || byName(r.found, name) != nil {
		return
	}
	u := empty(r.gvk, r.namespace, name)
	switch err := r.router.options.Cache.Get(ctx, client.ObjectKeyFromObject(u), u); {
	case apierrors.IsNotFound(err):
	case err != nil:
		r.err = fmt.Errorf("read %s %q: %w", r.gvk.Kind, name, err)
	default:
		r.add(*u)
	}
}

func (r *reader) add(u unstructured.Unstructured) {
	if byName(r.found, u.GetName()) == nil {
		r.found = append(r.found, u)
	}
}

func (r *reader) sorted() []unstructured.Unstructured {
	slices.SortFunc(r.found, byAge)
	return r.found
}

// byAge orders objects as Istio does, so that two passes decide alike.
func byAge(a, b unstructured.Unstructured) int {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(at.Compare(bt.Time), cmp.Compare(a.GetName(), b.GetName()))
}
