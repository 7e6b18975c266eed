// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/schedule"
)

// maxWait is the longest time between two looks at a Freeze: a timer knows nothing of a
// clock that is set, or of a machine that was suspended.
const maxWait = time.Hour

// Reconciler is the only writer of the status of Freezes.
type Reconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

// New makes a Reconciler.
func New(c client.Client, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{client: c, clock: clock}
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("freeze").
		For(&v1alpha1.Freeze{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(bounds.Options(1)).
		Complete(tracing.Reconciler("freeze", r))
}

// Reconcile writes the status when it changes, and looks again when it will change.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	f := &v1alpha1.Freeze{}
	if err := r.client.Get(ctx, req.NamespacedName, f); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := r.clock.Now()
	status := schedule.FreezeStatus(f, now)
	if !equality.Semantic.DeepEqual(status, f.Status) {
		before := f.DeepCopy()
		f.Status = status
		if err := r.client.Status().Patch(ctx, f, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
		}
	}
	return reconcile.Result{RequeueAfter: wait(status, now)}, nil
}

// wait is how long the status stays true; 0 when it changes by no time.
func wait(status v1alpha1.FreezeStatus, now time.Time) time.Duration {
	if status.NextChangeTime == nil {
		return 0
	}
	return min(status.NextChangeTime.Sub(now), maxWait)
}
