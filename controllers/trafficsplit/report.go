// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit/debounce"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/controllers/trafficsplit/reporting"
	"github.com/serin-dev/serin/traffic"
)

// statusManager owns the annotation with the status, apart from what the controller
// writes with other patches.
const statusManager = traffic.FieldManager + "-status"

// report writes the status when it differs, and then the events of what changed. It
// returns when to look again, if the report may wait.
func (r *Reconciler) report(ctx context.Context, o *observation, report *plan.Report) (time.Duration, error) {
	if report == nil {
		return 0, nil
	}
	split := o.Split
	now, key := r.Options.Clock.Now(), client.ObjectKeyFromObject(split)
	next := reporting.Status(split, report, now)
	if !reporting.Changed(split.Status, next) {
		r.waiting.Forget(key)
		return 0, nil
	}
	if reporting.MayWait(split, next, o.Means == traffic.MeansRoutes && len(o.DataPlane.Objects) == 0) {
		if left := r.waiting.Look(key, "", debounce.Pause{Quiet: reporting.PauseOf(report, o.DataPlane.Settle)}, now); left > 0 {
			return left, nil
		}
	}
	r.waiting.Forget(key)
	return 0, r.write(ctx, split, next)
}

func (r *Reconciler) write(ctx context.Context, split *splitv1.TrafficSplit, next splitv1.TrafficSplitStatus) error {
	before := versionOf(split)
	if err := r.writeStatus(ctx, split, next); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	if versionOf(split) != before {
		r.replaced.note(client.ObjectKeyFromObject(split), before)
	}
	for _, e := range reporting.Events(split, next) {
		r.reporter().Announce(ctx, split, e)
	}
	return nil
}

// versionOf tells versions of splits apart, also of those that had the same name.
func versionOf(split *splitv1.TrafficSplit) string {
	return string(split.UID) + " " + split.ResourceVersion
}

func (r *Reconciler) writeStatus(ctx context.Context, split *splitv1.TrafficSplit, next splitv1.TrafficSplitStatus) error {
	config, err := r.identity(split)
	if err != nil {
		return err
	}
	if r.Options.Served.NoStatus {
		return r.annotateStatus(ctx, split, config, next)
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next)
	if err != nil {
		return err
	}
	config.Object["status"] = body
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner(traffic.FieldManager), client.ForceOwnership, client.DisableReadYourWritesConsistency)
	if err == nil {
		split.ResourceVersion = config.GetResourceVersion() // the actions change this version
	}
	return client.IgnoreNotFound(err)
}

// annotateStatus writes the status of a split that has none of its own.
func (r *Reconciler) annotateStatus(ctx context.Context, split *splitv1.TrafficSplit, config *unstructured.Unstructured, next splitv1.TrafficSplitStatus) error {
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	config.SetAnnotations(map[string]string{splitv1.AnnotationStatus: string(text)})
	err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner(statusManager), client.ForceOwnership, client.DisableReadYourWritesConsistency)
	if err == nil {
		split.ResourceVersion = config.GetResourceVersion()
	}
	return client.IgnoreNotFound(err)
}

func (r *Reconciler) reporter() shell.Reporter {
	return shell.Reporter{Recorder: r.Options.Recorder, Kind: "TrafficSplit", Action: "Program"}
}
