// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "gatewayAPI"

// fieldManager owns what the router writes.
const fieldManager = "serin-trafficsplit"

// Router serves splits with routes of the Gateway API. It implements traffic.Router.
type Router struct {
	reader  client.Reader
	writer  client.Writer
	options Options
}

var (
	_ traffic.Router           = (*Router)(nil)
	_ traffic.NamespaceWatcher = (*Router)(nil)
	_ traffic.Hosted           = (*Router)(nil)
)

// Cache is what the router reads routes from: the manager's cache itself, since a
// manager's client reads objects without a Go type past it.
type Cache interface {
	client.Reader
	client.FieldIndexer
}

// New makes a Router.
func New(ctx context.Context, cache Cache, writer client.Writer, options Options) (*Router, error) {
	if options.Settle == 0 {
		options.Settle = DefaultSettle
	}
	r := &Router{reader: cache, writer: writer, options: options}
	for _, i := range r.indexes() {
		if err := cache.IndexField(ctx, objectOf(i.kind), i.name, i.values); err != nil {
			return nil, fmt.Errorf("index %s: %w", i.kind.Kind, err)
		}
	}
	return r, nil
}

// Name implements traffic.Router.
func (r *Router) Name() string { return Name }

// Means implements traffic.Router.
func (r *Router) Means() traffic.Means { return traffic.MeansRoutes }

// Kinds implements traffic.Router.
func (r *Router) Kinds() []schema.GroupVersionKind {
	kinds := r.routes()
	if policy, served := r.options.Served.Kinds[kindTLSPolicy]; served {
		kinds = append(kinds, policy)
	}
	return kinds
}

// NamespaceKinds implements traffic.NamespaceWatcher: a route for the root Service, or a policy
// for it, may make a split impossible, or possible again.
func (r *Router) NamespaceKinds() []schema.GroupVersionKind { return r.Kinds() }

// Hosts implements traffic.Hosted.
func (r *Router) Hosts() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{kindGateway, kindGatewayClass} {
		if gvk, served := r.options.Served.Kinds[kind]; served {
			kinds = append(kinds, gvk)
		}
	}
	return kinds
}

// DependsOnHosts implements traffic.Hosted: only for a mirror, gateways are asked whether
// they can.
func (r *Router) DependsOnHosts(split *splitv1.TrafficSplit) bool {
	routing, _ := splitv1.RoutingOf(split)
	return routing.Mirror != nil && len(routing.Routes) > 0
}

// routes are the kinds of routes that are served.
func (r *Router) routes() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, kind := range routeKinds {
		if gvk, served := r.options.Served.Kinds[kind]; served {
			kinds = append(kinds, gvk)
		}
	}
	return kinds
}

// asked is true for a split that asks for this router.
func (r *Router) asked(split *splitv1.TrafficSplit) bool {
	name := traffic.RouterName(split, "")
	return name == Name || name == "" && r.options.Default
}

// Observe implements traffic.Router.
func (r *Router) Observe(ctx context.Context, target traffic.Target) (traffic.State, error) {
	o := observer{router: r, target: target, known: len(target.Resolved.Ports) > 0, asked: r.asked(target.Split)}
	err := o.observe(ctx)
	return traffic.State{Objects: o.objects, Problems: o.problems, Settle: r.options.Settle}, err
}

// get reads a route; nil when there is none.
func (r *Router) get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	route := objectOf(gvk)
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, route)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", gvk.Kind, name, err)
	}
	return route, nil
}

// list reads the objects of a kind in a namespace, by name: the cache has them in any
// order, and what is said of them must not change with it. They are shared with the cache.
func (r *Router) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := r.reader.List(ctx, &list, append(options, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return list.Items, nil
}

// observed reads an object again that was observed, and fails when it is not the same
// any more.
func (r *Router) observed(ctx context.Context, target traffic.Target, object traffic.Object) (*unstructured.Unstructured, error) {
	route, err := r.get(ctx, object.GroupVersionKind, target.Split.Namespace, object.Name)
	if err != nil {
		return nil, err
	}
	if route == nil || route.GetUID() != object.UID || route.GetResourceVersion() != object.ResourceVersion {
		resource := schema.GroupResource{Group: object.Group, Resource: object.Kind}
		return nil, apierrors.NewConflict(resource, object.Name, errors.New("it changed since it was observed"))
	}
	return route, nil
}

// Apply implements traffic.Router.
func (r *Router) Apply(ctx context.Context, target traffic.Target, object traffic.Object) error {
	if !object.Patched {
		return r.applyOwn(ctx, target, object)
	}
	route, err := r.observed(ctx, target, object)
	if err != nil {
		return err
	}
	changed, err := Changed(route, target, r.options.Served.Schema)
	if err != nil {
		return err
	}
	return r.patch(ctx, route, changed)
}

// Restore implements traffic.Router.
func (r *Router) Restore(ctx context.Context, target traffic.Target, object traffic.Object) error {
	route, err := r.observed(ctx, target, object)
	if err != nil {
		return err
	}
	restored, err := Restored(route, target.Split)
	if err != nil {
		return err
	}
	return r.patch(ctx, route, restored)
}

// patch writes the difference and nothing else, if the route is still the one that
// was read.
func (r *Router) patch(ctx context.Context, route, changed *unstructured.Unstructured) error {
	return r.writer.Patch(ctx, changed, client.MergeFromWithOptions(route, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(fieldManager), client.DisableReadYourWritesConsistency)
}

// applyOwn makes a route of the router's own, or gives it the spec that is wanted and
// nothing else. That is no server-side apply: one would leave what another writer added to
// the route, such as a hostname.
func (r *Router) applyOwn(ctx context.Context, target traffic.Target, object traffic.Object) error {
	routes := ownRoutes(target.Resolved, target.Root)
	i := slices.IndexFunc(routes, func(o ownRoute) bool { return o.name == object.Name && o.kind == object.Kind })
	if i < 0 {
		return fmt.Errorf("router %s makes no %s %q for the split", Name, object.Kind, object.Name)
	}
	spec, err := routes[i].spec(target.Resolved, r.options.Served.Schema)
	if err != nil {
		return err
	}
	if object.ResourceVersion == "" {
		made := objectOf(object.GroupVersionKind)
		made.SetNamespace(target.Split.Namespace)
		made.SetName(object.Name)
		setOwn(made, target.Split.Name, spec)
		return r.writer.Create(ctx, made, client.FieldOwner(fieldManager), client.DisableReadYourWritesConsistency)
	}
	live, err := r.observed(ctx, target, object)
	if err != nil {
		return err
	}
	changed := live.DeepCopy()
	setOwn(changed, target.Split.Name, spec)
	return r.patch(ctx, live, changed)
}

// setOwn sets what the router wants of a route of its own.
func setOwn(route *unstructured.Unstructured, split string, spec map[string]any) {
	labels := route.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, ownLabels(split))
	route.SetLabels(labels)
	route.Object["spec"] = copyOf(spec)
}

// ownLabels are those of the routes that the router makes. The first says whose they
// are.
func ownLabels(split string) map[string]string {
	return map[string]string{
		traffic.LabelProxy: split,
		labelManager:       manager,
		labelComponent:     component,
	}
}

// objectOf is an object of a kind without fields.
func objectOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	return o
}
