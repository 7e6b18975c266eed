// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// meant lets pass the updates of an object that its owner made. A gateway reports in the
// status of routes all the time, and one that no split names means many splits.
var meant = predicate.Or[client.Object](
	predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
)

// watchSurroundings watches what no split made or names, and may matter to it all the
// same.
func (r *Reconciler) watchSurroundings(scheme *runtime.Scheme, b *builder.Builder) error {
	for _, router := range r.Options.Routers {
		if router.Means() == traffic.MeansProxies {
			b.Watches(&networkingv1.NetworkPolicy{}, handler.EnqueueRequestsFromMapFunc(r.splitsOfPolicy(router)))
		}
		if watcher, ok := router.(traffic.NamespaceWatcher); ok {
			for _, gvk := range watcher.NamespaceKinds() {
				if err := watch(scheme, b, gvk, r.splitsNear(router, gvk.Kind), builder.WithPredicates(meant)); err != nil {
					return err
				}
			}
		}
		if hosted, ok := router.(traffic.Hosted); ok {
			for _, gvk := range hosted.Hosts() {
				if err := watch(scheme, b, gvk, r.splitsThrough(router, hosted)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func watch(scheme *runtime.Scheme, b *builder.Builder, gvk schema.GroupVersionKind, follow handler.MapFunc, options ...builder.WatchesOption) error {
	object, err := objectOf(scheme, gvk)
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	b.Watches(object, handler.EnqueueRequestsFromMapFunc(follow), options...)
	return nil
}

// splitsNear maps an object that has no split to every split of its namespace that asks
// for a router.
func (r *Reconciler) splitsNear(router traffic.Router, kind string) handler.MapFunc {
	own := r.splitsOfRoute(kind)
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		if len(own(ctx, o)) > 0 {
			return nil
		}
		asks := func(split *splitv1.TrafficSplit) bool { return r.Options.routerName(split) == router.Name() }
		return r.chosen(ctx, asks, client.InNamespace(o.GetNamespace()))
	}
}

// splitsOfPolicy maps a NetworkPolicy to the split that it was made for, and to those of a
// router that it may matter to: of its namespace, or of all when it says where pods may send to.
// One of proxies alone, which each split may have, matters to no other split.
func (r *Reconciler) splitsOfPolicy(router traffic.Router) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		policy, ok := o.(*networkingv1.NetworkPolicy)
		if ok && traffic.OfProxiesAlone(policy) {
			return splitOfProxy(ctx, o)
		}
		var options []client.ListOption
		if ok && len(policy.Spec.Egress) == 0 {
			options = append(options, client.InNamespace(o.GetNamespace()))
		}
		asks := func(split *splitv1.TrafficSplit) bool { return r.Options.routerName(split) == router.Name() }
		return append(splitOfProxy(ctx, o), r.chosen(ctx, asks, options...)...)
	}
}

// splitsThrough maps what serves routes to every split that depends on it. Gateways serve
// the routes of many namespaces; there are few, and few splits depend on them.
func (r *Reconciler) splitsThrough(router traffic.Router, hosted traffic.Hosted) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.chosen(ctx, func(split *splitv1.TrafficSplit) bool {
			return r.Options.routerName(split) == router.Name() && hosted.DependsOnHosts(split)
		})
	}
}
