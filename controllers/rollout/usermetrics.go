// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/controllers/sampling/evidence"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
	"github.com/serin-dev/serin/controllers/sampling/templates"
)

// UserMetrics are measured in the background while a release needs them.
type UserMetrics interface {
	// Watch begins to measure a release, or notes what changed.
	Watch(rollout types.NamespacedName, r metrics.Release)
	// Forget ends the measurement.
	Forget(rollout types.NamespacedName)
	// Samples returns what the metrics gave so far.
	Samples(rollout types.NamespacedName) []metrics.Series
	// Changed carries the Rollouts for which there is something new.
	Changed() <-chan event.TypedGenericEvent[types.NamespacedName]
}

// asksForMetrics reports whether a Rollout names metrics of its own.
func asksForMetrics(ro *v1alpha1.Rollout) bool {
	a := ro.Spec.Analysis
	return a != nil && len(a.Metrics)+len(a.TemplateRefs) > 0
}

// observeMetrics finds out what the user's metrics are.
func (r *Reconciler) observeMetrics(ctx context.Context, s *snapshot) error {
	if !asksForMetrics(s.Rollout) {
		r.observeCounting(s, nil)
		return nil
	}
	if i := clusterTemplate(s.Rollout); r.options.NamespacedOnly && i >= 0 {
		s.Metrics = strategy.Metrics{Problem: fmt.Sprintf("spec.analysis.templateRefs[%d]: the operator of this namespace reads no ClusterAnalysisTemplates "+
			"(clusterObjects.enabled of its chart is false); use an AnalysisTemplate", i)}
		return nil
	}
	var err error
	if s.templates, err = templates.Read(ctx, r.client, s.Rollout.Namespace, s.Rollout.Spec.Analysis); err != nil {
		return err
	}
	if r.options.NamespacedOnly {
		s.shared.Unreadable = true
	} else if s.shared, err = templates.Shared(ctx, r.client, s.Rollout.Namespace, s.Rollout.Spec.Analysis, s.templates); err != nil {
		return err
	}
	resolved, err := s.resolveMetrics(&s.Rollout.Status)
	if err != nil {
		s.Metrics = strategy.Metrics{Problem: err.Error()}
		return nil //nolint:nilerr // a mistake in them is the user's to fix, and no fault of the observation
	}
	r.observeCounting(s, resolved)
	s.holdAgainst(resolved)
	return nil
}

// clusterTemplate is the place of the first template that belongs to no namespace; -1 when
// none does.
func clusterTemplate(ro *v1alpha1.Rollout) int {
	return slices.IndexFunc(ro.Spec.Analysis.TemplateRefs, func(ref v1alpha1.TemplateReference) bool {
		return ref.Kind == v1alpha1.KindClusterAnalysisTemplate
	})
}

// holdAgainst takes the user's metrics as the judge does.
func (s *snapshot) holdAgainst(resolved []resolve.Metric) {
	// A mistake in what is read here is reported where the rest of the settings is.
	read, _ := settings.Of(s.Rollout.Spec.Analysis)
	of := evidence.Of(resolved, read.Judge.Tolerance).Counted(s.counting, resolved)
	s.Metrics.Limits, s.Metrics.Comparisons = of.Limits, of.Comparisons
	s.Metrics.ValuesOnly, s.Metrics.StaleAfter, s.Metrics.Tolerance = of.ValuesOnly, of.StaleAfter, of.Tolerance
}

// servedRecheck is how often it is looked at again whether the cluster serves what a Rollout
// needs, of which nothing notifies.
const servedRecheck = 30 * time.Second

// observeCounting finds out what counts the requests of each version where no router does.
func (r *Reconciler) observeCounting(s *snapshot, resolved []resolve.Metric) {
	if !s.routerless() {
		return
	}
	s.counting = evidence.CountingOf(s.Rollout.Spec.Analysis, resolved)
	if s.counting == evidence.CountingReplicaSets && r.options.TrafficMetrics != nil && !r.options.TrafficMetrics() {
		s.Metrics.Problem = "spec.analysis: nothing counts the requests of each version with the router none: no metric has compare, and the cluster serves no TrafficMetrics; " +
			"compare counters by pod-template-hash in spec.analysis.metrics, install the TrafficMetrics server with a Prometheus profile that measures pods, or remove spec.analysis"
		s.recheck = sooner(s.recheck, servedRecheck)
	}
}

// resolveMetrics are the metrics of the release that a status is about.
func (s *snapshot) resolveMetrics(status *v1alpha1.RolloutStatus) ([]resolve.Metric, error) {
	ro := s.Rollout
	stable, canary := backendNames(ro)
	of := resolve.Release{
		Namespace: ro.Namespace, Name: ro.Name, Service: ro.Spec.Service, UID: string(ro.UID),
		StableService: stable, CanaryService: canary,
	}
	if status.Stable != nil {
		of.StableRevision = status.Stable.Revision
	}
	if status.Canary != nil {
		of.CanaryRevision = status.Canary.Revision
	}
	if status.Step != nil {
		of.Step, of.Began = status.Step.Index, status.Step.StartedAt.UTC().Format(time.RFC3339Nano)
	}
	resolved, err := resolve.Resolve(ro.Spec.Analysis, s.templates, of)
	if err != nil {
		return nil, err
	}
	return s.shared.Attach(resolved)
}

// measurable leaves out what is measured once for a step, until the step is live:
// what it gives before says nothing about it.
func measurable(list []resolve.Metric, step *v1alpha1.StepStatus) []resolve.Metric {
	if step != nil && step.ProgrammedAt != nil {
		return list
	}
	return slices.DeleteFunc(list, func(m resolve.Metric) bool { return m.Provider.Job != nil && !m.Provider.Job.Repeat })
}

// attachMetrics adds what the user's metrics gave to the windows of traffic; where
// there have been none for too long, the numbers count by themselves.
func (r *Reconciler) attachMetrics(s *snapshot, judged time.Time) {
	if !asksForMetrics(s.Rollout) {
		return
	}
	live, last := liveSince(s.Rollout.Status.Step), judged
	judged = lastValue(s.Rollout.Status.Analysis, judged)
	series := r.options.Metrics.Samples(client.ObjectKeyFromObject(s.Rollout))
	stale := judge.Defaults().StaleAfter
	switch s.counting {
	case evidence.CountingComparison:
		s.Windows, series = evidence.Traffic(series, last)
		stale = s.Metrics.StaleAfter
	case evidence.CountingValues:
		stale = -1 // there is nothing to wait for
	case evidence.CountingNothing, evidence.CountingReplicaSets:
	}
	s.Windows = evidence.Attach(s.Windows, series, judged, live)
	if live.After(last) {
		last = live
	}
	if len(s.Windows) > 0 || live.IsZero() || s.Now.Sub(last) <= stale {
		return
	}
	s.Values = evidence.KnownSince(series, judged, live)
}

// liveSince is when the weight of a step became live; zero before it has.
func liveSince(step *v1alpha1.StepStatus) time.Time {
	if step == nil || step.ProgrammedAt == nil {
		return time.Time{}
	}
	return step.ProgrammedAt.Time
}

// lastValue is when the last of the values that were judged was measured, with traffic or after it.
func lastValue(a *v1alpha1.AnalysisStatus, traffic time.Time) time.Time {
	if a == nil || a.LastValueAt == nil || !a.LastValueAt.After(traffic) {
		return traffic
	}
	return a.LastValueAt.Time
}

// measureMetrics has the metrics of a release measured that is under way.
func (r *Reconciler) measureMetrics(s *snapshot, d state.Decision) {
	key := client.ObjectKeyFromObject(s.Rollout)
	if !asksForMetrics(s.Rollout) || !d.Measure || d.Status.Canary == nil {
		r.options.Metrics.Forget(key)
		return
	}
	measured := metrics.Release{Owner: s.Rollout.UID, Revision: d.Status.Canary.Revision, Weight: d.Weight}
	resolved, err := s.resolveMetrics(&d.Status)
	if err != nil {
		measured.Problem = err.Error()
	}
	measured.Metrics = measurable(resolved, d.Status.Step)
	r.options.Metrics.Watch(key, measured)
}
