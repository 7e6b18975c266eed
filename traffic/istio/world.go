// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// world reads what matters to a split and nothing else: what the router made or changed
// for it and, if the split asks for this router, what it names and what is for the same
// Services.
func (r *Router) world(ctx context.Context, target traffic.Target) (world, error) {
	w := world{kinds: r.kinds, selected: routes.SelectedBy(target.Split, Name, r.options.Default)}
	virtual := reader{router: r, gvk: r.kinds.routes(), namespace: target.Split.Namespace}
	rules := reader{router: r, gvk: r.kinds.rules(), namespace: target.Split.Namespace}
	left := short(target.Split.Name)
	virtual.list(ctx, indexSplit, left)
	rules.list(ctx, indexSplit, left)
	if w.selected {
		named := namedRoutes(target.Split)
		for _, n := range named {
			virtual.get(ctx, n.name)
		}
		if len(named) == 0 {
			virtual.list(ctx, indexHost, target.Resolved.Root)
		}
		for _, service := range append(sentTo(target.Resolved), target.Resolved.Root) {
			rules.list(ctx, indexHost, service)
		}
	}
	if virtual.err != nil {
		return world{}, virtual.err
	}
	w.routes, w.rules = virtual.sorted(), rules.sorted()
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
	list, err := r.router.objects.List(ctx, r.gvk, r.namespace, index, value)
	r.err = err
	for _, u := range list {
		r.add(u)
	}
}

// get adds the object of a name, if there is one.
func (r *reader) get(ctx context.Context, name string) {
	if r.err != nil || byName(r.found, name) != nil {
		return
	}
	u, err := r.router.objects.Get(ctx, r.gvk, r.namespace, name)
	if r.err = err; u != nil {
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

// The indexes of the cache. A namespace may hold hundreds of objects of Istio, of which
// a split needs a handful.
const (
	// indexSplit of an object holds short for each split that may have made or changed it.
	indexSplit = "istio.serin.dev/split"
	// indexHost of an object holds the Services that it is for: those with the hosts of a
	// VirtualService within the mesh, or the one that a DestinationRule is about.
	indexHost = "istio.serin.dev/host"
)

// indexesOf are the indexes of the kinds.
func indexesOf(kinds []schema.GroupVersionKind) []routes.Index {
	var indexes []routes.Index
	for _, gvk := range kinds {
		indexes = append(indexes, routes.Index{Kind: gvk, Name: indexSplit, Values: values(splitsOf)}, routes.Index{Kind: gvk, Name: indexHost, Values: values(hostsOf)})
	}
	return indexes
}

func values(of func(*unstructured.Unstructured) []string) client.IndexerFunc {
	return func(o client.Object) []string {
		if u, ok := o.(*unstructured.Unstructured); ok {
			return of(u)
		}
		return nil
	}
}

// splitsOf finds more than madeFor and holderOf tell: also what only has the name of an
// object that the router makes, and so is in its way.
func splitsOf(u *unstructured.Unstructured) []string {
	var digests []string
	for _, name := range []string{u.GetLabels()[traffic.LabelProxy], holderOf(u)} {
		if name != "" {
			digests = appendNew(digests, short(name))
		}
	}
	if digest := digestInName(u); digest != "" {
		digests = appendNew(digests, digest)
	}
	return digests
}

func hostsOf(u *unstructured.Unstructured) []string {
	spec, _ := u.Object["spec"].(map[string]any)
	hosts := []any{spec["host"]}
	if u.GetKind() == kindVirtualService {
		hosts = meshHosts(spec)
	}
	var services []string
	for _, h := range hosts {
		if host, ok := parseHost(text(h), u.GetNamespace()); ok {
			services = appendNew(services, host.service)
		}
	}
	return services
}
