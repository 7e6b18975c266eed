// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "gatewayAPI"

// DefaultSettle is how long proxies are given to follow routes that are confirmed. A
// route's status says that it was taken, never that every proxy serves it.
const DefaultSettle = 5 * time.Second

// Options of the router.
type Options struct {
	// Served is what the cluster serves and the operator may read: see Discover.
	Served Served
	// Default is true when splits that name no router are this one's. Of others' splits
	// it looks for nothing but what it left.
	Default bool
	// Settle is how long proxies are given to follow. Default DefaultSettle.
	Settle time.Duration
	// Namespaces are those whose objects the cache has; none for all.
	Namespaces []string
}

// cached reports whether the cache has the objects of a namespace.
func (o Options) cached(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
}

// Router serves splits with routes of the Gateway API. It implements traffic.Router.
type Router struct {
	objects routes.Objects
	options Options
}

var (
	_ traffic.Router           = (*Router)(nil)
	_ traffic.NamespaceWatcher = (*Router)(nil)
	_ traffic.Hosted           = (*Router)(nil)
)

// New makes a Router.
func New(ctx context.Context, cache routes.Cache, writer client.Writer, options Options) (*Router, error) {
	if options.Settle == 0 {
		options.Settle = DefaultSettle
	}
	r := &Router{objects: routes.Objects{Reader: cache, Writer: writer}, options: options}
	return r, routes.AddIndexes(ctx, cache, r.indexes())
}

// Name implements traffic.Router.
func (r *Router) Name() string { return Name }

// Means implements traffic.Router.
func (r *Router) Means() traffic.Means { return traffic.MeansRoutes }

// Kinds implements traffic.Router.
func (r *Router) Kinds() []schema.GroupVersionKind {
	kinds := r.served()
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

// served are the kinds of routes that are served.
func (r *Router) served() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, kind := range routeKinds {
		if gvk, served := r.options.Served.Kinds[kind]; served {
			kinds = append(kinds, gvk)
		}
	}
	return kinds
}

// Observe implements traffic.Router.
func (r *Router) Observe(ctx context.Context, target traffic.Target) (traffic.State, error) {
	o := observer{router: r, target: target, known: len(target.Resolved.Ports) > 0, selected: routes.SelectedBy(target.Split, Name, r.options.Default)}
	err := o.observe(ctx)
	return traffic.State{Objects: o.objects, Problems: o.problems, Settle: r.options.Settle}, err
}

// Apply implements traffic.Router.
func (r *Router) Apply(ctx context.Context, target traffic.Target, object traffic.Object) error {
	if !object.Patched {
		return r.applyOwn(ctx, target, object)
	}
	live, err := r.objects.Observed(ctx, target.Split.Namespace, object)
	if err != nil {
		return err
	}
	changed, err := Changed(live, target, r.options.Served.Schema)
	if err != nil {
		return err
	}
	return r.objects.Patch(ctx, live, changed)
}

// Restore implements traffic.Router.
func (r *Router) Restore(ctx context.Context, target traffic.Target, object traffic.Object) error {
	live, err := r.objects.Observed(ctx, target.Split.Namespace, object)
	if err != nil {
		return err
	}
	restored, err := Restored(live, target.Split)
	if err != nil {
		return err
	}
	return r.objects.Patch(ctx, live, restored)
}

// applyOwn makes or corrects a route of the router's own.
func (r *Router) applyOwn(ctx context.Context, target traffic.Target, object traffic.Object) error {
	own := ownRoutes(target.Resolved, target.Root)
	i := slices.IndexFunc(own, func(o ownRoute) bool { return o.name == object.Name && o.kind == object.Kind })
	if i < 0 {
		return fmt.Errorf("router %s makes no %s %q for the split", Name, object.Kind, object.Name)
	}
	spec, err := own[i].spec(target.Resolved, r.options.Served.Schema)
	if err != nil {
		return err
	}
	return r.objects.ApplyOwn(ctx, target, object, spec)
}

// refusals are one problem for each line of an error.
func refusals(prefix string, err error) []traffic.Problem {
	var problems []traffic.Problem
	for line := range strings.SplitSeq(err.Error(), "\n") {
		problems = append(problems, traffic.Unsupported("%s%s", prefix, line))
	}
	return problems
}

// Check implements traffic.Router. What depends on the routes, Observe finds.
func (r *Router) Check(split traffic.Split, services map[string]*corev1.Service) []traffic.Problem {
	problems := traffic.Lacking(split, Name, traffic.AbilityMatch, traffic.AbilityMirror, traffic.AbilitySticky, traffic.AbilityRoutes)
	problems = append(problems, routes.CheckName(split)...)
	problems = append(problems, r.checkServed(split, services[split.Root])...)
	for _, own := range ownRoutes(split, services[split.Root]) {
		if _, err := own.spec(split, r.options.Served.Schema); err != nil {
			problems = append(problems, refusals("", err)...)
		}
	}
	return problems
}

// checkServed refuses kinds of routes that the cluster lacks.
func (r *Router) checkServed(split traffic.Split, root *corev1.Service) []traffic.Problem {
	const install = "install its CustomResourceDefinition and restart the operator, or choose another router"
	var problems []traffic.Problem
	for _, route := range split.Routes {
		switch _, served := r.options.Served.Kinds[route.Kind]; {
		case !slices.Contains(routeKinds, route.Kind):
			problems = append(problems, traffic.Unsupported("%s: %s is not a route of the Gateway API; name one of %s", traffic.FieldRoutes, route, strings.Join(routeKinds, ", ")))
		case !served:
			problems = append(problems, traffic.Unsupported("%s: this cluster did not serve %s when the operator started; %s", traffic.FieldRoutes, route.Kind, install))
		}
	}
	for _, own := range ownRoutes(split, root) {
		if _, served := r.options.Served.Kinds[own.kind]; !served {
			problems = append(problems, traffic.Unsupported("spec.service: port %d needs a %s, which this cluster did not serve when the operator started; %s", own.port.Number, own.kind, install))
		}
	}
	return problems
}
