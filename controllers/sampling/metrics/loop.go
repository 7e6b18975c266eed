// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/controllers/kit/changes"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
	"github.com/serin-dev/serin/poll"
	"github.com/serin-dev/serin/poll/fair"
)

// Builder makes what measures a metric. Its error names the field and the fix.
type Builder func(resolve.Metric) (source.Measurer, error)

// Release is what is measured, and under which weight.
type Release struct {
	// Owner is the UID of the Rollout, which owns the AnalysisResult.
	Owner types.UID
	// Revision of the canary. Another one begins afresh.
	Revision string
	// Weight of the canary. As for the proxies, it has no Since while it is changing:
	// no window closes then.
	Weight analysis.Weight
	// Metrics of the release, at most v1alpha1.MaxResultMetrics. Samples of a metric
	// are kept as long as it is equal to what it was.
	Metrics []resolve.Metric
	// Problem is what is wrong with the metrics of the Rollout, for the AnalysisResult.
	Problem string
}

// Options of a Loop. What is zero gets the default.
type Options struct {
	// Slots bound how many measurements are made at once. Default: 32.
	Slots *fair.Slots
	// WriteEvery is the shortest time between two writes of an AnalysisResult. Default
	// 15 s.
	WriteEvery time.Duration
}

// Loop measures releases. All methods may be called from any goroutine.
type Loop struct {
	changes.Channel // carries the Rollouts for which Samples gives something new

	build   Builder
	results client.Client
	clock   clock.WithTicker
	options Options
	poller  *poll.Poller[*metric]
	writes  workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu       sync.Mutex
	releases map[types.NamespacedName]*release
}

// release is one that is measured. The Loop's lock guards it.
type release struct {
	spec    Release
	metrics []*metric
	// writeAt is when the AnalysisResult may be written again, and queued whether it
	// will be.
	writeAt time.Time
	queued  bool
}

// New makes a Loop that keeps AnalysisResults with the given client.
func New(build Builder, results client.Client, clk clock.WithTicker, o Options) *Loop {
	if o.Slots == nil {
		o.Slots = fair.NewSlots(fair.Limits{Slots: 32})
	}
	if o.WriteEvery <= 0 {
		o.WriteEvery = 15 * time.Second
	}
	return &Loop{
		Channel: changes.New(), build: build, results: results, clock: clk, options: o, poller: poll.New[*metric](clk, o.Slots),
		writes: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Second, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "analysisresults", Clock: clk}),
		releases: map[types.NamespacedName]*release{},
	}
}

// Watch has a release measured, or updates what is measured. The same arguments change
// nothing. Like the weight of the proxies, that of the release has to be without Since
// before another one is written. Metrics that can't be built are measured as missing,
// with the mistake as their message.
func (l *Loop) Watch(rollout types.NamespacedName, r Release) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.releases[rollout]
	if known != nil && reflect.DeepEqual(known.spec, r) {
		return
	}
	next := &release{spec: r}
	if known != nil {
		next.writeAt, next.queued = known.writeAt, known.queued
	}
	next.metrics = make([]*metric, 0, len(r.Metrics))
	for i := range r.Metrics {
		m := known.metric(r, r.Metrics[i])
		if m == nil {
			m = l.begin(rollout, r.Metrics[i])
		}
		m.weight = r.Weight
		next.metrics = append(next.metrics, m)
	}
	l.end(known, next.metrics)
	l.releases[rollout] = next
	if known == nil || known.spec.Problem != r.Problem || known.spec.Revision != r.Revision {
		l.write(rollout, next)
	}
}

// metric is the state of a metric that stays what it was; nil when there is none.
func (r *release) metric(next Release, wanted resolve.Metric) *metric {
	if r == nil || r.spec.Revision != next.Revision || r.spec.Owner != next.Owner {
		return nil
	}
	for _, m := range r.metrics {
		if reflect.DeepEqual(m.spec, wanted) {
			return m
		}
	}
	return nil
}

// begin has a metric measured, at once and then in each of its intervals.
func (l *Loop) begin(rollout types.NamespacedName, spec resolve.Metric) *metric {
	m := &metric{spec: spec}
	var err error
	if m.measurer, err = l.build(spec); err != nil {
		m.measurer = broken{err: fmt.Errorf("%s.provider.%s.%w", spec.Field, spec.Provider.Type, err)}
	}
	l.poller.Set(m, poll.Task{
		Namespace: rollout.Namespace, From: l.clock.Now(), Every: spec.Interval, Do: func(ctx context.Context) { l.measure(ctx, rollout, m) },
	})
	l.poller.Now(m)
	return m
}

// end ends the measurement of a release, but for some of its metrics.
func (l *Loop) end(r *release, but []*metric) {
	if r == nil {
		return
	}
	for _, m := range r.metrics {
		if !slices.Contains(but, m) {
			l.poller.Remove(m)
		}
	}
}

// broken is a metric that can't be measured until a user corrects it.
type broken struct{ err error }

func (b broken) Measure(context.Context, time.Time) (source.Sample, error) {
	return source.Sample{}, &source.MissingError{Reason: source.Rejected, Message: b.err.Error()}
}

// Forget ends the measurement of a release. Its AnalysisResult stays.
func (l *Loop) Forget(rollout types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(l.releases[rollout], nil)
	delete(l.releases, rollout)
}

// Samples returns what the metrics of a release gave so far, in the order of
// Release.Metrics; nil when it is not being measured.
func (l *Loop) Samples(rollout types.NamespacedName) []Series {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.releases[rollout]
	if r == nil {
		return nil
	}
	list := make([]Series, 0, len(r.metrics))
	for _, m := range r.metrics {
		list = append(list, m.series())
	}
	return list
}

// NeedLeaderElection is true: only the leader judges.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start measures until ctx ends, and waits for the measurements under way.
func (l *Loop) Start(ctx context.Context) error {
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() { l.writeResults(ctx) })
	defer l.writes.ShutDown()
	return l.poller.Run(ctx)
}

// measure makes one measurement, and keeps what it gave.
func (l *Loop) measure(ctx context.Context, rollout types.NamespacedName, m *metric) {
	at := l.now()
	sample, err := ask(ctx, m.measurer, at)
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return // stopping is not a fault of the metric, and what was forgotten is not kept
	}
	if m.add(reading{at: at, known: l.now(), sample: sample, err: err}) {
		l.write(rollout, l.releases[rollout])
		l.Notify(rollout)
	}
}

// now is in whole microseconds, which survive being stored in the API.
func (l *Loop) now() time.Time { return l.clock.Now().Truncate(time.Microsecond) }

// ask measures. A measurer that panics is one that could not measure.
func ask(ctx context.Context, m source.Measurer, at time.Time) (s source.Sample, err error) {
	defer func() {
		if recover() != nil {
			s, err = source.Sample{}, &source.MissingError{Reason: source.Malformed, Message: "the measurement broke down; please report it"}
		}
	}()
	return m.Measure(ctx, at)
}
