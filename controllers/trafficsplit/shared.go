// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// What the proxies of all splits of a namespace share is made with the first split and
// deleted with the last. It is in use while there are proxies, and while a split asks for
// the router. Whichever of these goes last causes a look at its split, which then finds
// nothing else. Splits that begin at the same time see the deletion, and make it anew.

// lookAt observes the data plane of a router. What its splits share is in use as well when
// another split is to be served.
func (r *Reconciler) lookAt(ctx context.Context, router traffic.Router, target traffic.Target) (traffic.State, error) {
	state, err := router.Observe(ctx, target)
	if err != nil {
		return traffic.State{}, fmt.Errorf("observe the data plane of router %s: %w", router.Name(), err)
	}
	if router.Means() == traffic.MeansProxies {
		led, err := r.leading(ctx, client.ObjectKeyFromObject(target.Split))
		if err != nil {
			return traffic.State{}, err
		}
		state.Objects = append(state.Objects, led...)
	}
	idle := func(o traffic.Object) bool { return o.Shared && !o.InUse && o.Condition != traffic.ObjectAbsent }
	if !slices.ContainsFunc(state.Objects, idle) {
		return state, nil
	}
	awaited, err := r.othersAskFor(ctx, router, target.Split)
	if err != nil {
		return traffic.State{}, err
	}
	for i := range state.Objects {
		state.Objects[i].InUse = state.Objects[i].Shared && (state.Objects[i].InUse || awaited)
	}
	return state, nil
}

// leading are the EndpointSlices that make the proxies of a split endpoints. One that its Service does not
// own, as a backup brings it, is unwanted: the controller of EndpointSlices replaces it.
func (r *Reconciler) leading(ctx context.Context, split types.NamespacedName) ([]traffic.Object, error) {
	found, err := r.endpoints().Slices(ctx, split, "")
	if err != nil {
		return nil, err
	}
	var out []traffic.Object
	for _, s := range found {
		service := &corev1.Service{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}, service, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the Service of EndpointSlice %q: %w", s.Name, err)
		}
		out = append(out, traffic.Object{
			GroupVersionKind: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
			Name:             s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, Condition: traffic.ObjectCurrent,
			Unwanted: err != nil || !metav1.IsControlledBy(s, service),
		})
	}
	return out, nil
}

// othersAskFor is true when another split of the namespace asks for a router and stays.
func (r *Reconciler) othersAskFor(ctx context.Context, router traffic.Router, split *splitv1.TrafficSplit) (bool, error) {
	var list splitv1.TrafficSplitList
	if err := r.Client.List(ctx, &list, client.InNamespace(split.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list TrafficSplits: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != split.Name && other.DeletionTimestamp.IsZero() &&
			r.Options.claim(other) == plan.ClaimOurs && r.Options.routerName(other) == router.Name() {
			return true, nil
		}
	}
	return false, nil
}

// splitsOfProxies maps an object of a data plane to its split, one without the label to the split that
// needs its name, and one that splits share to all splits of its namespace. A split of its own name,
// which there hardly is, stands for splits that are gone, where none is left whose end brings that look.
func (r *Reconciler) splitsOfProxies(ctx context.Context, o client.Object) []reconcile.Request {
	switch split, found := o.GetLabels()[traffic.LabelProxy]; {
	case !found:
		return r.splits(ctx, o.GetNamespace(), client.MatchingFields{indexNames: o.GetName()})
	case split != "":
		return splitOfProxy(ctx, o)
	}
	requests := r.splits(ctx, o.GetNamespace())
	served := func(split *splitv1.TrafficSplit) bool { return slices.Contains(split.Finalizers, traffic.Finalizer) }
	if len(r.chosen(ctx, served, client.InNamespace(o.GetNamespace()))) > 0 {
		return requests
	}
	gone := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	return append(requests, reconcile.Request{NamespacedName: gone})
}
