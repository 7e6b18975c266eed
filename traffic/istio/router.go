// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// DefaultSettle is how long Istio's proxies are given to follow a VirtualService.
// istiod gathers changes for 0.1 s to 10 s before it sends them.
const DefaultSettle = 10 * time.Second

// Options of the router.
type Options struct {
	// Cache holds the namespaces' objects without a type.
	Cache routes.Cache
	// Client writes.
	Client client.Writer
	// Mapper says which versions of Istio's kinds the cluster serves.
	Mapper meta.RESTMapper
	// Default is true when splits that name no router are this one's. Of others' splits
	// it looks for nothing but what it left.
	Default bool
	// Settle is how long proxies may go on to serve what was before. Default DefaultSettle.
	Settle time.Duration
}

// Router leads traffic by Istio's VirtualServices. It implements traffic.Router.
type Router struct {
	kinds   kinds
	objects routes.Objects
	options Options
}

var (
	_ traffic.Router           = (*Router)(nil)
	_ traffic.NamespaceWatcher = (*Router)(nil)
)

// New makes a Router. In a cluster without Istio it refuses every split; Istio that is
// installed later is found when the operator starts again.
func New(ctx context.Context, options Options) (*Router, error) {
	if options.Settle == 0 {
		options.Settle = DefaultSettle
	}
	served, err := servedKinds(options.Mapper)
	if err != nil {
		return nil, err
	}
	r := &Router{kinds: served, objects: routes.Objects{Reader: options.Cache, Writer: options.Client}, options: options}
	return r, routes.AddIndexes(ctx, options.Cache, indexesOf(r.Kinds()))
}

// Name implements traffic.Router.
func (r *Router) Name() string { return Name }

// Means implements traffic.Router.
func (r *Router) Means() traffic.Means { return traffic.MeansRoutes }

// Kinds implements traffic.Router.
func (r *Router) Kinds() []schema.GroupVersionKind {
	if !r.kinds.served() {
		return nil
	}
	return []schema.GroupVersionKind{r.kinds.routes(), r.kinds.rules()}
}

// NamespaceKinds implements traffic.NamespaceWatcher: a rule of the root Service is copied, and
// a VirtualService of a user may have its host.
func (r *Router) NamespaceKinds() []schema.GroupVersionKind { return r.Kinds() }

// Observe implements traffic.Router.
func (r *Router) Observe(ctx context.Context, target traffic.Target) (traffic.State, error) {
	state := traffic.State{Settle: r.options.Settle}
	if !r.kinds.served() {
		return state, nil
	}
	w, err := r.world(ctx, target)
	if err != nil {
		return traffic.State{}, err
	}
	found := w.find(target)
	for _, i := range found.items {
		state.Objects = append(state.Objects, i.Object)
	}
	for _, refusal := range found.refusals {
		state.Problems = append(state.Problems, traffic.Unsupported("%s", refusal))
	}
	return state, nil
}

// Apply implements traffic.Router.
func (r *Router) Apply(ctx context.Context, target traffic.Target, object traffic.Object) error {
	live, err := r.objects.Observed(ctx, target.Split.Namespace, object)
	if err != nil {
		return err
	}
	w, err := r.world(ctx, target)
	if err != nil {
		return err
	}
	for _, i := range w.find(target).items {
		switch {
		case i.Kind != object.Kind || i.Name != object.Name || i.spec == nil: // another, refused, or not needed
		case i.Patched:
			return r.patch(ctx, live, i.spec, map[string]string{traffic.AnnotationSplit: target.Split.Name, annotationOriginal: i.record})
		default:
			return r.objects.ApplyOwn(ctx, target, object, i.spec)
		}
	}
	return fmt.Errorf("router %s wants nothing of %s %q", Name, object.Kind, object.Name)
}

// Restore implements traffic.Router.
func (r *Router) Restore(ctx context.Context, target traffic.Target, object traffic.Object) error {
	if object.Kind != kindVirtualService {
		return fmt.Errorf("router %s has not changed %s %q", Name, object.Kind, object.Name)
	}
	live, err := r.objects.Observed(ctx, target.Split.Namespace, object)
	if err != nil {
		return err
	}
	return r.patch(ctx, live, originalOf(live, target.Split), map[string]string{traffic.AnnotationSplit: "", annotationOriginal: ""})
}

// patch replaces the lists of routes of a patched object, and the annotations.
func (r *Router) patch(ctx context.Context, live *unstructured.Unstructured, spec map[string]any, annotations map[string]string) error {
	changed := live.DeepCopy()
	for _, section := range sections {
		if list, found := spec[section]; found {
			if err := unstructured.SetNestedField(changed.Object, runtime.DeepCopyJSONValue(list), "spec", section); err != nil {
				return err
			}
		}
	}
	routes.Annotate(changed, annotations)
	return r.objects.Patch(ctx, live, changed)
}

// Check finds what Istio can't express, whatever the VirtualServices hold. What can't be
// expressed in one of them, Observe says of that object.
func (r *Router) Check(split traffic.Split, services map[string]*corev1.Service) []traffic.Problem {
	problems := traffic.Lacking(split, Name, traffic.AbilityMatch, traffic.AbilityMirror, traffic.AbilityRoutes)
	add := func(format string, args ...any) { problems = append(problems, traffic.Unsupported(format, args...)) }
	if !r.kinds.served() {
		add("%s: this cluster did not serve VirtualServices and DestinationRules of %s when the operator started; "+
			"install Istio and restart the operator, or choose another router", traffic.FieldRouter, group)
		return problems
	}
	problems = append(problems, routes.CheckName(split)...)
	for _, route := range split.Routes {
		if route.Kind != kindVirtualService {
			add("%s: %s is not a route of Istio; name a VirtualService, or choose the router gatewayAPI", traffic.FieldRoutes, route)
		}
	}
	for _, m := range split.Matches {
		if _, _, err := intersect(block{}, m); err != nil {
			add("spec.matches: %s: %s", m, err)
		}
	}
	if root := services[split.Root]; root != nil && len(split.Routes) == 0 && len(problems) == 0 && len(split.Ports) > 0 {
		if _, err := MakeMeshSpec(split, root); err != nil {
			add("spec.service: %s", err)
		}
	}
	return problems
}
