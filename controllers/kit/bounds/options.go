// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	firstRetry = 20 * time.Millisecond
	// MaxRetry is the longest time between two tries of what fails: an action that fails
	// for ever must not keep a deadline, or a rollback, waiting for longer.
	MaxRetry = 10 * time.Second

	// Deadline of a reconcile. Its requests take milliseconds, and the reads of its caches
	// end after CacheWait, so that only a request to the API that hangs meets it.
	Deadline = time.Minute
)

// Options are those of a controller that reconciles so many objects at once.
func Options(concurrency int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, MaxRetry),
		ReconciliationTimeout:   Deadline,
	}
}

// Within limits a part of a reconcile whose whole may take longer.
func Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, Deadline)
}
