// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit/debounce"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

// report writes the status when it differs, and then the events of what changed. It
// returns when to look again, if the report may wait.
func (r *Reconciler) report(ctx context.Context, split *splitv1.TrafficSplit, report *plan.Report) (time.Duration, error) {
	if report == nil {
		return 0, nil
	}
	now, key := r.Options.Clock.Now(), client.ObjectKeyFromObject(split)
	next := statusOf(split, report, now)
	if equality.Semantic.DeepEqual(next.Conditions, split.Status.Conditions) &&
		equality.Semantic.DeepEqual(next.Backends, split.Status.Backends) &&
		equality.Semantic.DeepEqual(next.Mirror, split.Status.Mirror) &&
		equality.Semantic.DeepEqual(next.Confirmed, split.Status.Confirmed) && next.Router == split.Status.Router &&
		next.ObservedRouting == split.Status.ObservedRouting {
		r.waiting.Forget(key)
		return 0, nil
	}
	if mayWait(split, next) {
		if left := r.waiting.Look(key, "", debounce.Pause{Quiet: reportPause}, now); left > 0 {
			return left, nil
		}
	}
	r.waiting.Forget(key)
	return 0, r.write(ctx, split, next)
}

func (r *Reconciler) write(ctx context.Context, split *splitv1.TrafficSplit, next splitv1.TrafficSplitStatus) error {
	if err := r.writeStatus(ctx, split, next); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	for _, e := range eventsOf(split.Status, next) {
		r.Options.Recorder.Eventf(split, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
	return nil
}

func (r *Reconciler) writeStatus(ctx context.Context, split *splitv1.TrafficSplit, next splitv1.TrafficSplitStatus) error {
	config, err := r.identity(split)
	if err != nil {
		return err
	}
	if r.Options.Served.NoStatus {
		return r.annotateStatus(ctx, config, next)
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next)
	if err != nil {
		return err
	}
	delete(body, "proxies") // each is its proxy's own
	config.Object["status"] = body
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner(FieldManager), client.ForceOwnership, client.DisableReadYourWritesConsistency)
	return client.IgnoreNotFound(err)
}

// statusOf is the status that follows from a report. The time of a transition is
// kept while the condition's status stays.
func statusOf(split *splitv1.TrafficSplit, report *plan.Report, now time.Time) splitv1.TrafficSplitStatus {
	next := split.Status.DeepCopy()
	set := func(name string, c plan.Condition) {
		meta.SetStatusCondition(&next.Conditions, metav1.Condition{
			Type: name, Status: c.Status, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: split.Generation,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	set(splitv1.ConditionAccepted, report.Accepted)
	set(splitv1.ConditionResolvedRefs, report.ResolvedRefs)
	set(splitv1.ConditionProgrammed, report.Programmed)
	if d := report.Distribution; d != nil {
		set(splitv1.ConditionTrafficDistributionAccepted, d.Accepted)
		set(splitv1.ConditionTrafficDistributionProgrammed, d.Programmed)
	} else {
		meta.RemoveStatusCondition(&next.Conditions, splitv1.ConditionTrafficDistributionAccepted)
		meta.RemoveStatusCondition(&next.Conditions, splitv1.ConditionTrafficDistributionProgrammed)
	}
	next.Backends, next.Mirror, next.Confirmed, next.Router = report.Backends, report.Mirror, report.Confirmed, report.Router
	next.ObservedRouting = splitv1.RoutingDigest(split)
	return *next
}
