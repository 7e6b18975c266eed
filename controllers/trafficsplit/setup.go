// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// Names of the indexes of the cache.
const (
	// indexRoot of a TrafficSplit is the name of its root Service.
	indexRoot = "trafficsplit.serin.dev/root"
	// indexRefs of a TrafficSplit are the names of the Services that it refers to.
	indexRefs = "trafficsplit.serin.dev/refs"
	// indexGroups of a TrafficSplit are the names of its HTTPRouteGroups.
	indexGroups = "trafficsplit.serin.dev/groups"
	// indexService of an EndpointSlice is the name of its Service.
	indexService = endpoints.IndexService
	// indexHolder of a Service is the split that leads it.
	indexHolder = endpoints.IndexHolder
	// indexRoutes of a TrafficSplit are the routes that it names.
	indexRoutes = "trafficsplit.serin.dev/routes"
	// indexNames of a TrafficSplit are the names of the objects of its proxies.
	indexNames = "trafficsplit.serin.dev/names"
)

// index is one index of the cache. Its function must not panic, whatever the
// object holds: it runs where every event of the kind passes.
type index struct {
	object client.Object
	name   string
	values client.IndexerFunc
}

func indexes() []index {
	return []index{
		{&splitv1.TrafficSplit{}, indexRoot, rootIndex},
		{&splitv1.TrafficSplit{}, indexRefs, refsIndex},
		{&splitv1.TrafficSplit{}, indexGroups, groupsIndex},
		{&splitv1.TrafficSplit{}, indexCircular, circularIndex},
		{&discoveryv1.EndpointSlice{}, indexService, serviceIndex},
		{&corev1.Service{}, indexHolder, holderIndex},
		{&splitv1.TrafficSplit{}, indexRoutes, routesIndex},
		{&splitv1.TrafficSplit{}, indexNames, namesIndex},
		{&corev1.Pod{}, traffic.IndexProxy, splitIndex},
		{&appsv1.ReplicaSet{}, traffic.IndexProxy, splitIndex},
		{&networkingv1.NetworkPolicy{}, traffic.IndexPolicies, policyIndex},
		{&discoveryv1.EndpointSlice{}, traffic.IndexProxy, splitIndex},
	}
}

func rootIndex(o client.Object) []string {
	split, ok := o.(*splitv1.TrafficSplit)
	if !ok {
		return nil
	}
	root, err := traffic.RootName(split)
	if err != nil {
		return nil
	}
	return []string{root}
}

func refsIndex(o client.Object) []string {
	split, ok := o.(*splitv1.TrafficSplit)
	if !ok {
		return nil
	}
	return named(split)
}

func groupsIndex(o client.Object) []string {
	split, ok := o.(*splitv1.TrafficSplit)
	if !ok {
		return nil
	}
	return resolve.GroupNames(split)
}

func serviceIndex(o client.Object) []string {
	return nonEmpty(o.GetLabels()[discoveryv1.LabelServiceName])
}

func holderIndex(o client.Object) []string {
	service, ok := o.(*corev1.Service)
	if !ok {
		return nil
	}
	return nonEmpty(traffic.Holder(service))
}

func routesIndex(o client.Object) []string {
	split, ok := o.(*splitv1.TrafficSplit)
	if !ok {
		return nil
	}
	var keys []string
	for _, route := range traffic.RouteNames(split) {
		keys = append(keys, route.Kind+"/"+route.Name)
	}
	return keys
}

func namesIndex(o client.Object) []string {
	return []string{traffic.ProxyName(o.GetName()), traffic.UnmatchedName(o.GetName())}
}

// splitIndex of a pod or a ReplicaSet is the split of its proxies, and of an EndpointSlice the one
// that it was made for.
func splitIndex(o client.Object) []string { return nonEmpty(o.GetLabels()[traffic.LabelProxy]) }

func policyIndex(o client.Object) []string {
	policy, ok := o.(*networkingv1.NetworkPolicy)
	if !ok {
		return nil
	}
	return traffic.PolicyKeys(policy)
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// SetupWithManager adds the controller to a manager, whose cache should be made
// with CacheOptions. The context bounds the start of the informers only.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if err := options.complete(); err != nil {
		return err
	}
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Options: options}
	return r.setup(ctx, mgr)
}

func (r *Reconciler) setup(ctx context.Context, mgr ctrl.Manager) error {
	for _, i := range indexes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.object, i.name, i.values); err != nil {
			return fmt.Errorf("index %s: %w", i.name, err)
		}
	}
	if err := r.endpoints().SetupWithManager(mgr, r.Options.Workers); err != nil {
		return fmt.Errorf("set up the controller of the proxies' endpoints: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("trafficsplit").
		For(&splitv1.TrafficSplit{}).
		Watches(&splitv1.TrafficSplit{}, handler.EnqueueRequestsFromMapFunc(r.rivals)).
		Watches(&splitv1.TrafficSplit{}, handler.EnqueueRequestsFromMapFunc(r.circular)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.splitsOfService)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.splitsOfEndpoints)).
		WithOptions(bounds.Options(r.Options.Workers))
	if r.Options.Changed != nil {
		b.WatchesRawSource(source.TypedChannel(r.Options.Changed, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				queue.Add(reconcile.Request{NamespacedName: e.Object})
			},
		}))
	}
	if err := r.watchGroups(mgr, b); err != nil {
		return err
	}
	if err := r.watchDataPlanes(mgr.GetScheme(), b); err != nil {
		return err
	}
	if err := r.watchSurroundings(mgr.GetScheme(), b); err != nil {
		return err
	}
	return b.Complete(tracing.Reconciler("trafficsplit", r))
}

// watchGroups watches HTTPRouteGroups if the cluster has them: a mesh may have
// brought TrafficSplits alone, and a watch of a kind that there is not would keep
// the manager from starting.
func (r *Reconciler) watchGroups(mgr ctrl.Manager, b *builder.Builder) error {
	gvk := specsv1.GroupVersion.WithKind("HTTPRouteGroup")
	_, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		r.withoutGroups = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask whether the cluster serves HTTPRouteGroups: %w", err)
	}
	b.Watches(&specsv1.HTTPRouteGroup{}, handler.EnqueueRequestsFromMapFunc(r.splitsOfGroup))
	return nil
}

// watchDataPlanes watches the kinds of every router.
func (r *Reconciler) watchDataPlanes(scheme *runtime.Scheme, b *builder.Builder) error {
	watched := map[schema.GroupVersionKind]bool{}
	for _, router := range r.Options.Routers {
		for _, gvk := range router.Kinds() {
			if watched[gvk] {
				continue
			}
			watched[gvk] = true
			object, err := objectOf(scheme, gvk)
			if err != nil {
				return fmt.Errorf("watch the kinds of router %s: %w", router.Name(), err)
			}
			follow := r.splitsOfProxies
			if router.Means().Narrows() {
				follow = r.splitsOfRoute(gvk.Kind)
			}
			b.Watches(object, handler.EnqueueRequestsFromMapFunc(follow))
		}
	}
	return nil
}

// objectOf is an empty object of a kind, without a type where the scheme knows none.
func objectOf(scheme *runtime.Scheme, gvk schema.GroupVersionKind) (client.Object, error) {
	if !scheme.Recognizes(gvk) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		return object, nil
	}
	kind, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	object, ok := kind.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object", gvk)
	}
	return object, nil
}

// splitsOfRoute maps a route to the split that made it, to the one whose backends it
// names, and to those that name it.
func (r *Reconciler) splitsOfRoute(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		requests := splitOfProxy(ctx, o)
		if name := o.GetAnnotations()[traffic.AnnotationSplit]; name != "" {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
		}
		return append(requests, r.splits(ctx, o.GetNamespace(), client.MatchingFields{indexRoutes: kind + "/" + o.GetName()})...)
	}
}

// splitOfProxy maps an object of a data plane to its split.
func splitOfProxy(_ context.Context, o client.Object) []reconcile.Request {
	if split, found := traffic.MadeFor(o); found {
		return []reconcile.Request{{NamespacedName: split}}
	}
	name := o.GetLabels()[traffic.LabelProxy]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// rivals maps a split to the others of the same root Service, one of which may
// get it now.
func (r *Reconciler) rivals(ctx context.Context, o client.Object) []reconcile.Request {
	requests := []reconcile.Request{}
	for _, root := range rootIndex(o) {
		for _, request := range r.splits(ctx, o.GetNamespace(), client.MatchingFields{indexRoot: root}) {
			if request.Name != o.GetName() {
				requests = append(requests, request)
			}
		}
	}
	return requests
}

// splitsOfService maps a Service to the splits that name it, and to the one that leads it,
// which may be gone.
func (r *Reconciler) splitsOfService(ctx context.Context, o client.Object) []reconcile.Request {
	requests := r.splits(ctx, o.GetNamespace(), client.MatchingFields{indexRefs: o.GetName()})
	for _, name := range holderIndex(o) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
	}
	return requests
}

// splitsOfEndpoints maps an EndpointSlice to the splits that name its Service, and to the
// one that it was made for.
func (r *Reconciler) splitsOfEndpoints(ctx context.Context, o client.Object) []reconcile.Request {
	requests := splitOfProxy(ctx, o)
	for _, service := range serviceIndex(o) {
		requests = append(requests, r.splits(ctx, o.GetNamespace(), client.MatchingFields{indexRefs: service})...)
	}
	return requests
}

// splitsOfGroup maps an HTTPRouteGroup to the splits that refer to it.
func (r *Reconciler) splitsOfGroup(ctx context.Context, o client.Object) []reconcile.Request {
	return r.splits(ctx, o.GetNamespace(), client.MatchingFields{indexGroups: o.GetName()})
}

// splits lists from the cache, which fails only when it was stopped.
func (r *Reconciler) splits(ctx context.Context, namespace string, options ...client.ListOption) []reconcile.Request {
	all := func(*splitv1.TrafficSplit) bool { return true }
	return r.chosen(ctx, all, append(options, client.InNamespace(namespace))...)
}

// chosen lists the splits that are asked for from the cache. A handler of events must not
// wait for the events of the operator's own writes, which come after this one.
func (r *Reconciler) chosen(ctx context.Context, choose func(*splitv1.TrafficSplit) bool, options ...client.ListOption) []reconcile.Request {
	var list splitv1.TrafficSplitList
	if err := r.Client.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Could not list TrafficSplits")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		if choose(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
