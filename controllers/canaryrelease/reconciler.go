// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
)

// Options configure the controller.
type Options struct {
	// Live reads past the cache.
	Live client.Reader
	// Releases reads and upgrades Helm releases.
	Releases releases.Releases
	// As returns a client that acts as the ServiceAccount of a namespace that Helm is
	// called as, and reads from the API server.
	As func(namespace string) (client.Client, error)
	// Account is the name of that ServiceAccount, for messages.
	Account string
	// Measurements of the traffic, for the figures of the status.
	Measurements Measurements
	// Clock that is read, never waited on.
	Clock clock.PassiveClock
	// NamespacedOnly is whether the operator reads nothing that belongs to no namespace.
	NamespacedOnly bool
	// Concurrency is how many CanaryReleases are reconciled at once.
	Concurrency int
}

const (
	// recheck is how often Helm's records are read when nothing else happens.
	recheck = 15 * time.Second
	// again follows an upgrade, of which nothing else may tell.
	again = 10 * time.Millisecond
)

// Reconciler reconciles one CanaryRelease at a time.
type Reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	options  Options
	helm     memory
	// enqueue has one reconciled.
	enqueue func(types.NamespacedName)
}

// New returns a Reconciler that reads and writes through c.
func New(c client.Client, recorder events.EventRecorder, o Options) *Reconciler {
	return &Reconciler{client: c, recorder: recorder, options: o, helm: memory{known: map[client.ObjectKey]*knowledge{}, searched: map[client.ObjectKey]types.UID{}}, enqueue: func(types.NamespacedName) {}}
}

// Reconcile observes, decides, reports and acts, in this order: what was decided is on
// record before anything happens because of it. Only an upgrade by Helm may take longer
// than bounds.Deadline.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	brief, cancel := bounds.Within(ctx)
	defer cancel()
	cr, cleaning, err := r.find(brief, req.NamespacedName)
	if cr == nil {
		return cleaning, err
	}
	s, failed := r.observe(brief, cr)
	if failed != nil {
		log.FromContext(ctx).Error(failed, "Could not read all objects of the canary", "CanaryRelease", klog.KObj(cr))
	}
	_, deciding := tracing.Start(ctx, "decide")
	d := helmrelease.Decide(s.Observation)
	deciding.End()
	if failed == nil && s.mayStayQuiet(d) {
		return reconcile.Result{RequeueAfter: s.quiet}, nil
	}
	if d.Status.Release != nil {
		tracing.Note(ctx, tracing.Revision, strconv.Itoa(int(d.Status.Release.Revision)))
	}
	if err := r.report(brief, s, d); err != nil {
		return shell.Retry(err)
	}
	if err := r.act(ctx, s, d.Actions); err != nil {
		if errors.Is(err, errAgain) {
			return reconcile.Result{RequeueAfter: again}, nil
		}
		return shell.Retry(err)
	}
	if failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: sooner(d)}, nil
}

// find returns the CanaryRelease to reconcile: nil where there is none, and while what an earlier
// one left is removed.
func (r *Reconciler) find(ctx context.Context, key types.NamespacedName) (*v1alpha1.CanaryRelease, reconcile.Result, error) {
	cr := &v1alpha1.CanaryRelease{}
	if err := r.client.Get(ctx, key, cr); err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, reconcile.Result{}, err
		}
		again, left, err := r.restoreOrphans(ctx, key, nil)
		if !left {
			known := r.helm.forget(key)
			r.helm.setSearched(key, "")
			r.withdraw(key)
			r.forgetTraffic(key.Namespace, &known)
		}
		return nil, again, err
	}
	if mayFollow(cr) {
		if again, left, err := r.restoreOrphans(ctx, key, cr); left {
			return nil, again, err
		}
	}
	return cr, reconcile.Result{}, nil
}

// mayStayQuiet reports whether the status need not say yet that values wait to be rendered.
func (s *observation) mayStayQuiet(d helmrelease.Decision) bool {
	return s.quiet > 0 && len(d.Actions) == 0 && apiequality.Semantic.DeepEqual(s.CanaryRelease.Status.Decision, d.Status.Decision)
}

// mayFollow reports whether objects of an earlier CanaryRelease of the name may be in the way, or left: that
// was not removed before this one was made, or a backup that is restored brings them. One that has a canary
// is not kept from it by them.
func mayFollow(cr *v1alpha1.CanaryRelease) bool {
	ready := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady)
	conflict := ready != nil && ready.Reason == v1alpha1.ReasonConflict
	return cr.DeletionTimestamp.IsZero() && (isNew(cr) || cr.Status.Decision.Over() || conflict)
}

// isNew reports whether nothing was made for it yet.
func isNew(cr *v1alpha1.CanaryRelease) bool {
	return cr.Status.Release == nil && !cr.Status.Decision.Over()
}

// sooner is when to look again: at what only time changes, or at Helm's records.
func sooner(d helmrelease.Decision) time.Duration {
	switch {
	case d.Status.Decision.Over():
		return d.After
	case d.After > 0:
		return min(d.After, recheck)
	}
	return recheck
}

// report writes the status when it changed, and then the events.
func (r *Reconciler) report(ctx context.Context, s observation, d helmrelease.Decision) error {
	cr := s.CanaryRelease
	if !apiequality.Semantic.DeepEqual(cr.Status, d.Status) {
		next := cr.DeepCopy()
		next.Status = d.Status
		if err := r.client.Status().Update(ctx, next); err != nil {
			return fmt.Errorf("write the status: %w", err)
		}
		// The finalizer is changed by the same pass, on top of this version.
		cr.ResourceVersion = next.ResourceVersion
		s.helm.reportedAt = r.options.Clock.Now()
	}
	for _, e := range d.Events {
		r.reporter().Announce(ctx, cr, e)
	}
	return nil
}

// act carries the actions out; the first error stops the rest.
func (r *Reconciler) act(ctx context.Context, s observation, actions []kit.Action) error {
	for _, a := range actions {
		log.FromContext(ctx).V(1).Info("Writing to the cluster", "CanaryRelease", klog.KObj(s.CanaryRelease), "action", a.String())
		if err := tracing.Act(ctx, a, func(ctx context.Context) error { return r.apply(ctx, s, a) }); err != nil {
			if !apierrors.IsConflict(err) && !errors.Is(err, errAgain) {
				r.reporter().Record(s.CanaryRelease, corev1.EventTypeWarning, "ActionFailed", fmt.Sprintf("Could not %s: %s", a, safe(err)))
			}
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

func (r *Reconciler) reporter() shell.Reporter {
	return shell.Reporter{Recorder: r.recorder, Kind: "CanaryRelease", Action: "Canary"}
}
