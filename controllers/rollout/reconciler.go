// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/debounce"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/controllers/release"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/rollout/contents"
	"github.com/serin-dev/serin/controllers/rollout/telemetry"
	"github.com/serin-dev/serin/traffic"
)

// Measurements are the traffic of both versions, measured in the background
// while a release needs it.
type Measurements interface {
	// Measure begins to measure a TrafficSplit for a Rollout, or notes what changed. Since of
	// the weight is zero while the weight is changing.
	Measure(ctx context.Context, rollout types.NamespacedName, of analysis.Subject, w analysis.Weight) error
	// Forget ends the measurement.
	Forget(rollout types.NamespacedName)
	// Windows returns what was measured after a time, and why data is missing.
	Windows(rollout types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health)
}

// Options configure the controller.
type Options struct {
	// DefaultRouter serves Rollouts that name none.
	DefaultRouter v1alpha1.RouterName
	// Routers that the operator offers.
	Routers []v1alpha1.RouterName
	// Served is how the cluster serves TrafficSplits.
	Served traffic.Served
	// Drain is how long requests may still go to the Services of the versions after the
	// TrafficSplit is gone, for the routers that read TrafficSplits themselves.
	Drain map[v1alpha1.RouterName]time.Duration
	// Measurements of the traffic.
	Measurements Measurements
	// Metrics that users named.
	Metrics UserMetrics
	// TrafficMetrics reports whether the cluster serves them, or may; nil where it does.
	TrafficMetrics func() bool
	// Live reads past the cache.
	Live client.Reader
	// Recordings has no cache: with one, a write would have all of them watched.
	Recordings client.Client
	// Outbox delivers questions of hooks and notifications.
	Outbox Outbox
	// Clock that is read, never waited on.
	Clock clock.PassiveClock
	// Admission is what changes writes of other actors.
	Admission Admission
	// NamespacedOnly is whether the operator reads nothing that belongs to no namespace: it
	// knows of no Freezes and no ClusterAnalysisTemplates then.
	NamespacedOnly bool
	// CanaryReleases is whether the operator serves them, and a Rollout may release one.
	CanaryReleases bool
	// Configuration says what spec.configuration may request.
	Configuration ConfigurationOptions
	// Concurrency is how many Rollouts are reconciled at once.
	Concurrency int
}

// Reconciler reconciles one Rollout at a time.
type Reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	options  Options
	busy     debounce.Waits[types.UID] // Deployments that their controller is writing
	memory   memory

	recordings recordings
	metrics    *telemetry.Metrics
	contents   *contents.Contents

	distributions distributions
}

// New returns a Reconciler that reads and writes through c.
func New(c client.Client, recorder events.EventRecorder, o Options) *Reconciler {
	return &Reconciler{client: c, recorder: recorder, options: o, metrics: telemetry.New(), contents: contents.New()}
}

// Metrics are the metrics of what it does: register them once.
func (r *Reconciler) Metrics() *telemetry.Metrics { return r.metrics }

// Reconcile observes, decides, reports and acts, in this order: what was decided
// is on record before anything happens because of it.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ro := &v1alpha1.Rollout{}
	if err := r.client.Get(ctx, req.NamespacedName, ro); err != nil {
		if !apierrors.IsNotFound(err) {
			return reconcile.Result{}, err
		}
		again, waits, err := r.restoreOrphans(ctx, req.NamespacedName, nil)
		r.forget(req.NamespacedName, waits != "")
		return again, err
	}
	stored := r.memory.recall(ro)
	if ro.Status.Stable == nil { // it is new: an earlier one of its name may not have been restored
		if again, waits, err := r.restoreFirst(ctx, ro, stored); waits {
			return again, err
		}
	}
	s, err := r.observe(ctx, ro)
	if s.leftEarlier() {
		if again, waits, err := r.restoreFirst(ctx, ro, stored); waits {
			return again, err
		}
	}
	s.Stored = stored
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not read all objects of the release", "Rollout", klog.KObj(ro))
	}
	_, deciding := tracing.Start(ctx, "decide")
	d := release.Decide(s.Observation)
	deciding.End()
	describe(ctx, &d.Status)
	r.memory.decided(req.NamespacedName, d.After, d.Outage)
	if err := r.report(ctx, ro, stored, d); err != nil {
		return shell.Retry(err)
	}
	r.record(ctx, ro, stored, &d)
	if err := errors.Join(r.measure(ctx, &s, d), r.send(ro, d)); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.act(ctx, s, d.Actions); err != nil {
		return shell.Retry(err)
	}
	if err := r.storeRecordings(ctx, ro); err != nil {
		return shell.Retry(err)
	}
	return reconcile.Result{RequeueAfter: sooner(d.After, s.recheck)}, err
}

// describe has the trace say which release is reconciled, and where it stands.
func describe(ctx context.Context, status *v1alpha1.RolloutStatus) {
	if version := cmp.Or(status.Canary, status.Stable); version != nil {
		tracing.Note(ctx, tracing.Revision, version.Revision)
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
		tracing.Note(ctx, tracing.State, ready.Reason)
	}
}

// forget is called when a Rollout is gone. What is left of it has the memory stay.
func (r *Reconciler) forget(rollout types.NamespacedName, left bool) {
	r.options.Measurements.Forget(rollout)
	r.options.Metrics.Forget(rollout)
	r.options.Outbox.Keep(rollout, nil)
	r.metrics.Forget(rollout)
	r.contents.Forget(rollout)
	r.recordings.forget(rollout)
	if !left {
		r.memory.forget(rollout)
	}
}

// sooner is the shorter of two pauses, of which 0 means none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// report writes the status when it is another one than the stored one, or remembers it
// where the write may wait, and then announces the events.
func (r *Reconciler) report(ctx context.Context, ro *v1alpha1.Rollout, stored *v1alpha1.RolloutStatus, d state.Decision) error {
	key := client.ObjectKeyFromObject(ro)
	if d.LeftOut {
		r.memory.reported(key, r.options.Clock.Now())
	}
	switch {
	case d.Later:
		was, record := *stored, d.Status
		r.memory.putOff(key, &was, &record)
		r.metrics.Count(&ro.Status, &d.Status)
	case apiequality.Semantic.DeepEqual(stored, &d.Status):
		r.memory.putOff(key, nil, nil)
	default:
		if err := r.writeStatus(ctx, ro, d); err != nil {
			return err
		}
	}
	r.metrics.Show(key, &d.Status)
	for _, e := range d.Events {
		r.reporter().Announce(ctx, ro, e)
	}
	return nil
}

func (r *Reconciler) writeStatus(ctx context.Context, ro *v1alpha1.Rollout, d state.Decision) error {
	next, key := ro.DeepCopy(), client.ObjectKeyFromObject(ro)
	next.Status = d.Status
	if err := r.client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	// The finalizer is changed by the same pass, on top of this version.
	ro.ResourceVersion = next.ResourceVersion
	r.memory.reported(key, r.options.Clock.Now())
	r.memory.putOff(key, nil, nil)
	r.metrics.Count(&ro.Status, &d.Status)
	return nil
}

// measure hands the measurement what is going on before the weight is changed. Where
// that is not known it goes on as it was.
func (r *Reconciler) measure(ctx context.Context, s *snapshot, d state.Decision) error {
	if s.Unreadable != "" {
		return nil
	}
	r.measureMetrics(s, d)
	key := client.ObjectKeyFromObject(s.Rollout)
	of, measured := s.subject(&d.Status)
	if !d.Measure || !measured {
		r.options.Measurements.Forget(key)
		return nil
	}
	if err := r.options.Measurements.Measure(ctx, key, of, d.Weight); err != nil {
		return fmt.Errorf("measure the traffic: %w", err)
	}
	return nil
}

// act carries the actions out; the first error stops the rest.
func (r *Reconciler) act(ctx context.Context, s snapshot, actions []kit.Action) error {
	for _, a := range actions {
		log.FromContext(ctx).V(1).Info("Writing to the cluster", "Rollout", klog.KObj(s.Rollout), "action", a.String())
		if err := tracing.Act(ctx, a, func(ctx context.Context) error { return r.apply(ctx, s, a) }); err != nil {
			if !apierrors.IsConflict(err) {
				r.reporter().Record(s.Rollout, corev1.EventTypeWarning, "ActionFailed", fmt.Sprintf("Could not %s: %v", a, err))
			}
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

func (r *Reconciler) reporter() shell.Reporter {
	return shell.Reporter{Recorder: r.recorder, Kind: "Rollout", Action: "Release"}
}
