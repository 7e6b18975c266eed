// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/traffic"
)

// SetupWithManager adds the controller to a manager. It runs on each replica.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	options := bounds.Options(workers)
	options.NeedLeaderElection = new(false)
	return ctrl.NewControllerManagedBy(mgr).
		Named("proxyendpoints").
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(splitOf)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(splitOfSlice)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.splitsOfService)).
		WithOptions(options).
		Complete(tracing.Reconciler("proxyendpoints", r))
}

// splitOf maps a pod or an EndpointSlice of proxies to their split.
func splitOf(_ context.Context, o client.Object) []reconcile.Request {
	return request(o.GetNamespace(), o.GetLabels()[traffic.LabelProxy])
}

// splitOfSlice leaves out the many EndpointSlices that are others'.
func splitOfSlice(ctx context.Context, o client.Object) []reconcile.Request {
	if !Ours(o) {
		return nil
	}
	return splitOf(ctx, o)
}

// splitsOfService maps a Service to the split whose proxies' key it has, and to those of
// whose proxies it has EndpointSlices.
func (r *Reconciler) splitsOfService(ctx context.Context, o client.Object) []reconcile.Request {
	service, ok := o.(*corev1.Service)
	if !ok {
		return nil
	}
	requests := request(service.Namespace, service.Spec.Selector[traffic.LabelProxy])
	var list discoveryv1.EndpointSliceList
	err := r.Client.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{IndexService: service.Name},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Could not list the EndpointSlices of a Service")
	}
	for i := range list.Items {
		requests = append(requests, splitOfSlice(ctx, &list.Items[i])...)
	}
	return requests
}

func request(namespace, split string) []reconcile.Request {
	if split == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: split}}}
}
