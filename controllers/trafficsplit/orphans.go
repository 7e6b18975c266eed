// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// lateSplit is how much later than the objects that were made for it a split may come: a restore of a
// backup brings custom resources last. Until then those objects stay, since their proxies may be
// what a Service leads to that is restored in this moment.
const lateSplit = 30 * time.Second

// clearOrphans removes what is left of a split that is gone: when a user removed its
// finalizer, or a Service was restored from a backup. First the Services that select its
// proxies are restored, then its data plane is deleted. It returns when to look again if nothing
// changes.
func (r *Reconciler) clearOrphans(ctx context.Context, split types.NamespacedName) (again time.Duration, err error) {
	var services corev1.ServiceList
	err = r.Client.List(ctx, &services, client.InNamespace(split.Namespace), client.MatchingFields{indexHolder: split.Name})
	if err != nil {
		return 0, fmt.Errorf("list the Services that it leads: %w", err)
	}
	patched, made, again, err := r.orphans(ctx, split)
	if err != nil || len(services.Items)+len(patched)+len(made) == 0 {
		return again, err
	}
	if err := r.Live.Get(ctx, split, &splitv1.TrafficSplit{}); !apierrors.IsNotFound(err) {
		return 0, err // there is such a split, and the cache will show it, or it is not known
	}
	for _, o := range patched {
		if err := o.router.Restore(ctx, o.target, o.Object); err != nil {
			return 0, fmt.Errorf("restore %s %q: %w", o.Kind, o.Name, err)
		}
		logOrphan(ctx, split, plan.Restore{Write: orphan(o.Object)})
	}
	for i := range services.Items {
		if err := r.restoreRoot(ctx, &services.Items[i], traffic.Pin{}); err != nil {
			return 0, err
		}
		logOrphan(ctx, split, plan.RestoreRoot{Write: orphan(traffic.Object{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Service"), Name: services.Items[i].Name})})
	}
	for _, object := range made {
		if err := r.remove(ctx, split.Namespace, object); err != nil {
			return 0, err
		}
		logOrphan(ctx, split, plan.Delete{Write: orphan(object)})
	}
	return again, nil
}

func orphan(object traffic.Object) plan.Write {
	return plan.Write{Object: object, Why: "its TrafficSplit is gone"}
}

func logOrphan(ctx context.Context, split types.NamespacedName, action kit.Action) {
	log.FromContext(ctx).Info(action.String(), "TrafficSplit", klog.KRef(split.Namespace, split.Name))
}

// patchedObject is a patched object with the router that changed it.
type patchedObject struct {
	traffic.Object
	router traffic.Router
	target traffic.Target
}

// orphans are the objects of every router for a split: those that were patched, and
// those that were made, what runs the proxies first. Again is when proxies that stop are waited for
// no longer, or the split is.
func (r *Reconciler) orphans(ctx context.Context, split types.NamespacedName) (patched []patchedObject, made []traffic.Object, again time.Duration, err error) {
	gone := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: split.Namespace, Name: split.Name}}
	target, now := traffic.Target{Split: gone}, r.Options.Clock.Now()
	for _, router := range r.Options.Routers {
		state, err := r.lookAt(ctx, router, target)
		if err != nil {
			return nil, nil, 0, err
		}
		end, until := plan.Stopping(state.Proxies, now)
		adoption, later := plan.Unadopted(state.Proxies, now)
		again = max(again, until, later) // one router has proxies
		for _, o := range slices.Backward(state.Objects) {
			switch {
			case needed(o, adoption, end): // what goes last of the proxies brings the next look
			case o.Changed:
				patched = append(patched, patchedObject{o, router, target})
			case o.Shared && (o.InUse || r.isDeleted(split.Namespace, o)): // what goes last of those that use it brings the next look
			case isMade(o):
				made = append(made, o)
			}
		}
	}
	if left := min(lateSplit-now.Sub(lastCreated(made)), lateSplit); left > 0 {
		made, again = nil, left
	}
	draining, err := r.draining(ctx, gone)
	return patched, append(made, draining...), again, err
}

// lastCreated is when the youngest of some objects was created; the zero time for none.
func lastCreated(objects []traffic.Object) (last time.Time) {
	for _, o := range objects {
		if o.Created.After(last) {
			last = o.Created
		}
	}
	return last
}

// needed reports whether an object stays for proxies whose adoption, or whose end, is waited for.
func needed(o traffic.Object, adoption, end string) bool {
	if o.Workload {
		return adoption != ""
	}
	return end != "" && (o.Kind == "EndpointSlice" || o.Kind == "NetworkPolicy" || o.Backend)
}

// isMade reports whether an object is there that Serin made.
func isMade(o traffic.Object) bool {
	return !o.Patched && (o.Condition == traffic.ObjectOutdated || o.Condition == traffic.ObjectCurrent)
}
