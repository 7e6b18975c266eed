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
	"github.com/serin-dev/serin/traffic"
)

// clearOrphans takes back what is left of a split that is gone: when its
// finalizer was removed by hand, or a Service came back from a backup. First the
// Services that select its proxies are given back, then its data plane is deleted.
func (r *Reconciler) clearOrphans(ctx context.Context, split types.NamespacedName) error {
	var services corev1.ServiceList
	err := r.Client.List(ctx, &services, client.InNamespace(split.Namespace), client.MatchingFields{indexHolder: split.Name})
	if err != nil {
		return fmt.Errorf("list the Services that it leads: %w", err)
	}
	borrowed, made, err := r.orphans(ctx, split)
	if err != nil || len(services.Items)+len(borrowed)+len(made) == 0 {
		return err
	}
	if err := r.Live.Get(ctx, split, &splitv1.TrafficSplit{}); !apierrors.IsNotFound(err) {
		return err // there is such a split, and the cache will show it, or nobody knows
	}
	for _, o := range borrowed {
		if err := o.router.Restore(ctx, o.target, o.Object); err != nil {
			return fmt.Errorf("restore %s %q: %w", o.Kind, o.Name, err)
		}
		log.FromContext(ctx).Info("Restore", o.Kind, klog.KRef(split.Namespace, o.Name), "reason", "its TrafficSplit is gone")
	}
	for i := range services.Items {
		if err := r.giveBack(ctx, &services.Items[i], traffic.Pin{}); err != nil {
			return err
		}
		log.FromContext(ctx).Info("GiveBack", "Service", klog.KObj(&services.Items[i]), "reason", "its TrafficSplit is gone")
	}
	for _, object := range made {
		if err := r.remove(ctx, split.Namespace, object); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Delete", object.Kind, klog.KRef(split.Namespace, object.Name), "reason", "its TrafficSplit is gone")
	}
	return nil
}

// borrowedObject is an object of somebody else with the router that changed it.
type borrowedObject struct {
	traffic.Object
	router traffic.Router
	target traffic.Target
}

// orphans are the objects of every router for a split: those of somebody else, and
// those that were made, what runs the proxies first.
func (r *Reconciler) orphans(ctx context.Context, split types.NamespacedName) (borrowed []borrowedObject, made []traffic.Object, err error) {
	gone := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: split.Namespace, Name: split.Name}}
	target := traffic.Target{Split: gone}
	for _, router := range r.Options.Routers {
		state, err := router.Observe(ctx, target)
		if err != nil {
			return nil, nil, fmt.Errorf("observe the data plane of router %s: %w", router.Name(), err)
		}
		for _, o := range slices.Backward(state.Objects) {
			switch {
			case o.Changed:
				borrowed = append(borrowed, borrowedObject{o, router, target})
			case !o.Borrowed && (o.Condition == traffic.ObjectOutdated || o.Condition == traffic.ObjectCurrent):
				made = append(made, o)
			}
		}
	}
	lingering, err := r.lingering(ctx, gone)
	return borrowed, append(made, lingering...), err
}
