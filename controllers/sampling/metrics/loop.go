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
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
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
	// Concurrency is how many measurements are made at once. Default 32.
	Concurrency int
	// WriteEvery is the shortest time between two writes of an AnalysisResult. Default
	// 15 s.
	WriteEvery time.Duration
}

// Loop measures releases. All methods may be called from any goroutine.
type Loop struct {
	build   Builder
	results client.Client
	clock   clock.WithTicker
	options Options
	slots   chan struct{} // one token for each measurement under way
	wake    chan struct{} // holds a token when something may be due before the next round
	changed chan event.TypedGenericEvent[types.NamespacedName]
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

const (
	// round is how often it is looked for what is due.
	round = time.Second
	// backlog is how many changes may wait for the controller; one that finds no room is
	// dropped, since the next sample brings another.
	backlog = 1024
)

// New makes a Loop that keeps AnalysisResults with the given client.
func New(build Builder, results client.Client, clk clock.WithTicker, o Options) *Loop {
	if o.Concurrency <= 0 {
		o.Concurrency = 32
	}
	if o.WriteEvery <= 0 {
		o.WriteEvery = 15 * time.Second
	}
	return &Loop{
		build: build, results: results, clock: clk, options: o,
		slots: make(chan struct{}, o.Concurrency), wake: make(chan struct{}, 1),
		changed: make(chan event.TypedGenericEvent[types.NamespacedName], backlog),
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
			m = l.newMetric(r.Metrics[i])
		}
		m.weight = r.Weight
		next.metrics = append(next.metrics, m)
	}
	l.releases[rollout] = next
	if known == nil || known.spec.Problem != r.Problem || known.spec.Revision != r.Revision {
		l.write(rollout, next)
	}
	l.wakeUp()
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

// newMetric is due at once.
func (l *Loop) newMetric(spec resolve.Metric) *metric {
	m := &metric{spec: spec, due: l.clock.Now()}
	var err error
	if m.measurer, err = l.build(spec); err != nil {
		m.measurer = broken{err: fmt.Errorf("%s.provider.%s.%w", spec.Field, spec.Provider.Type, err)}
	}
	return m
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

// Changed carries the Rollouts for which Samples gives something new.
func (l *Loop) Changed() <-chan event.TypedGenericEvent[types.NamespacedName] { return l.changed }

// NeedLeaderElection is true: only the leader judges.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start measures until ctx ends, and waits for the measurements under way.
func (l *Loop) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	workers.Go(func() { l.writeResults(ctx) })
	defer l.writes.ShutDown()
	ticker := l.clock.NewTicker(round)
	defer ticker.Stop()
	for {
		l.startDue(ctx, &workers)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-l.wake:
		}
	}
}

// wakeUp has Start look for what is due; one token is enough for all.
func (l *Loop) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// startDue starts every measurement that is due and not under way.
func (l *Loop) startDue(ctx context.Context, workers *sync.WaitGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	for rollout, r := range l.releases {
		for _, m := range r.metrics {
			if m.begin(now) {
				workers.Go(func() { l.measure(ctx, rollout, m) })
			}
		}
	}
}

// measure makes one measurement once there is a free slot.
func (l *Loop) measure(ctx context.Context, rollout types.NamespacedName, m *metric) {
	select {
	case <-ctx.Done():
		return
	case l.slots <- struct{}{}:
	}
	// Whole microseconds survive being stored in the API.
	at := l.clock.Now().Truncate(time.Microsecond)
	sample, err := ask(ctx, m.measurer, at)
	<-l.slots
	if ctx.Err() != nil {
		return // stopping is not a fault of the metric
	}
	if l.store(rollout, m, reading{at: at, known: l.clock.Now().Truncate(time.Microsecond), sample: sample, err: err}) {
		select {
		case l.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: rollout}:
		default:
		}
	}
}

// ask measures. A measurer that panics is one that could not measure.
func ask(ctx context.Context, m source.Measurer, at time.Time) (s source.Sample, err error) {
	defer func() {
		if recover() != nil {
			s, err = source.Sample{}, &source.MissingError{Reason: source.Malformed, Message: "the measurement broke down; please report it"}
		}
	}()
	return m.Measure(ctx, at)
}

// store keeps a sample and reports whether there is something new. A release that was
// forgotten or changed meanwhile is left alone.
func (l *Loop) store(rollout types.NamespacedName, m *metric, read reading) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.busy = false
	r := l.releases[rollout]
	if r == nil || !r.has(m) || !m.add(read) {
		return false
	}
	l.write(rollout, r)
	return true
}

func (r *release) has(m *metric) bool {
	return slices.Contains(r.metrics, m)
}
