// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/traffic"
)

// clearOrphans takes back what is left of a split that is gone: when its
// finalizer was removed by hand, or a Service came back from a backup. First the
// Services that select its proxies are given back, then its data plane is deleted.
func (r *Reconciler) clearOrphans(ctx context.Context, split types.NamespacedName) error {
	var services corev1.ServiceList
	err := r.Client.List(ctx, &services, client.InNamespace(split.Namespace), client.MatchingFields{indexProxy: split.Name})
	if err != nil {
		return fmt.Errorf("list the Services that select the proxies: %w", err)
	}
	objects, err := r.orphans(ctx, split)
	if err != nil || len(services.Items)+len(objects) == 0 {
		return err
	}
	if err := r.Live.Get(ctx, split, &splitv1.TrafficSplit{}); !apierrors.IsNotFound(err) {
		return err // there is such a split, and the cache will show it, or nobody knows
	}
	for i := range services.Items {
		if err := r.giveBack(ctx, &services.Items[i]); err != nil {
			return err
		}
		log.FromContext(ctx).Info("GiveBack", "Service", klog.KObj(&services.Items[i]), "reason", "its TrafficSplit is gone")
	}
	for _, object := range objects {
		if err := r.remove(ctx, split.Namespace, object); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Delete", object.Kind, klog.KRef(split.Namespace, object.Name), "reason", "its TrafficSplit is gone")
	}
	return nil
}

// orphans are the objects of every router for a split, what runs the proxies first.
func (r *Reconciler) orphans(ctx context.Context, split types.NamespacedName) ([]traffic.Object, error) {
	gone := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: split.Namespace, Name: split.Name}}
	var objects []traffic.Object
	for _, router := range r.Options.Routers {
		state, err := router.Observe(ctx, traffic.Target{Split: gone})
		if err != nil {
			return nil, fmt.Errorf("observe the data plane of router %s: %w", router.Name(), err)
		}
		for _, o := range slices.Backward(state.Objects) {
			switch o.Condition {
			case traffic.ObjectOutdated, traffic.ObjectCurrent:
				objects = append(objects, o)
			case traffic.ObjectAbsent, traffic.ObjectTerminating, traffic.ObjectForeign:
			}
		}
	}
	return objects, nil
}
