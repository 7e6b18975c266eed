// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/kit/tracing"
)

// upgradeDeadline is that of a reconcile in which Helm upgrades. Helm waits for each hook of
// a chart for up to hookTimeout of package chart; a chart has few that take so long. What is
// interrupted is on Helm's record as failed, and tried again.
const upgradeDeadline = 30 * time.Minute

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	own, all := handler.EnqueueRequestsFromMapFunc(byLabel), handler.EnqueueRequestsFromMapFunc(r.everyActive)
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	options := bounds.Options(r.options.Concurrency)
	options.ReconciliationTimeout = upgradeDeadline // all but the upgrade ends after bounds.Deadline
	return builder.ControllerManagedBy(mgr).Named("canaryrelease").
		For(&v1alpha1.CanaryRelease{}, changed).
		// When one has ended, another of the same release may begin.
		Watches(&v1alpha1.CanaryRelease{}, all, changed).
		Watches(&appsv1.Deployment{}, all, builder.WithPredicates(shell.Changes())).
		Watches(&corev1.Service{}, all).
		Watches(&appsv1.ReplicaSet{}, all, builder.WithPredicates(shell.Changes())).
		Watches(&splitv1.TrafficSplit{}, own).
		Watches(&discoveryv1.EndpointSlice{}, own). // they have the labels of their Service
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.enqueue = func(name types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: name}) }
			return nil
		})).
		WithOptions(options).Complete(tracing.Reconciler("canaryrelease", r))
}

// byLabel finds the CanaryRelease that an object was made for.
func byLabel(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[v1alpha1.LabelCanaryRelease]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// everyActive finds the CanaryReleases of a namespace that have not ended. There are few.
func (r *Reconciler) everyActive(ctx context.Context, o client.Object) []reconcile.Request {
	found := &v1alpha1.CanaryReleaseList{}
	// The list comes from the cache and fails only while it is not synced: everything is
	// reconciled after that anyway. A handler of events must not wait for the events of
	// its own writes, which come after this one.
	err := r.client.List(ctx, found, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range found.Items {
		if !found.Items[i].Status.Decision.Over() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
		}
	}
	return out
}
