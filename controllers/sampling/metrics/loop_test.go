// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

var (
	website = types.NamespacedName{Namespace: "shop", Name: "website"}
	epoch   = time.Unix(1e9, 0).UTC()
)

// waitLimit is how long a test waits for what must happen.
const waitLimit = time.Minute

// place answers for all metrics, by their names.
type place struct {
	mu      sync.Mutex
	answers map[string]func(context.Context, time.Time) (source.Sample, error)
	asked   map[string]int
}

type measurer struct {
	p    *place
	name string
}

func (m measurer) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	m.p.mu.Lock()
	m.p.asked[m.name]++
	answer := m.p.answers[m.name]
	m.p.mu.Unlock()
	if answer == nil {
		return source.Sample{At: at, Value: 1}, nil
	}
	return answer(ctx, at)
}

func (p *place) set(name string, answer func(context.Context, time.Time) (source.Sample, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[name] = answer
}

func (p *place) count(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[name]
}

// fixture is a Loop at work.
type fixture struct {
	*Loop
	t     *testing.T
	clock *clocktesting.FakeClock
	place *place
	api   client.WithWatch
}

func play(t *testing.T, funcs interceptor.Funcs) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.AnalysisResult{}).Build(), funcs)
	p := &place{answers: map[string]func(context.Context, time.Time) (source.Sample, error){}, asked: map[string]int{}}
	build := func(m resolve.Metric) (source.Measurer, error) {
		if m.Name == "broken" {
			return nil, errors.New("query: is no PromQL; correct it")
		}
		return measurer{p, m.Name}, nil
	}
	clock := clocktesting.NewFakeClock(epoch)
	l := New(build, api, clock, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &fixture{Loop: l, t: t, clock: clock, place: p, api: api}
}

// until lets time pass, a second at a time, until a condition holds.
func (s *fixture) until(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(waitLimit); !holds(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: did not happen; %+v", what, s.Samples(website))
		}
		select {
		case <-s.Changed():
		case <-time.After(time.Millisecond):
		}
		s.clock.Step(time.Second)
	}
}

func (s *fixture) result() v1alpha1.AnalysisResult {
	s.t.Helper()
	var r v1alpha1.AnalysisResult
	if err := client.IgnoreNotFound(s.api.Get(s.t.Context(), website, &r)); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func metricOf(name string) resolve.Metric {
	return resolve.Metric{Name: name, Field: "spec.analysis.metrics[0]", Interval: 10 * time.Second, Provider: v1alpha1.MetricProvider{Type: v1alpha1.ProviderWeb}}
}

func releaseOf(metrics ...resolve.Metric) Release {
	return Release{Owner: "uid", Revision: "abc", Weight: analysis.Weight{Percent: 10, Since: epoch}, Metrics: metrics}
}

// interval says in which one a measurement was made. Within one it may come late, as
// time passes here faster than the loop works.
func interval(s Sample) time.Duration { return s.At.Sub(epoch) / (10 * time.Second) }

func TestNumbersAndReasonsAreKeptAndWritten(t *testing.T) {
	s := play(t, interceptor.Funcs{})
	s.Watch(website, releaseOf(metricOf("a")))
	s.until("two numbers", func() bool { return len(s.Samples(website)[0].Samples) == 2 })
	s.place.set("a", func(context.Context, time.Time) (source.Sample, error) {
		return source.Sample{}, &source.MissingError{Reason: source.Timeout, Message: "no answer within 10s"}
	})
	s.until("a reason", func() bool { return len(s.Samples(website)[0].Samples) == 3 })
	got := s.Samples(website)[0].Samples
	if got[0].Value != 1 || interval(got[1]) <= interval(got[0]) || got[2].Reason != source.Timeout || got[2].Message != "no answer within 10s" {
		t.Errorf("got %+v", got)
	}
	s.until("the result", func() bool { r := s.result(); return len(r.Status.Metrics) == 1 && r.Status.Metrics[0].Missing >= 1 })
	r := s.result()
	if r.Status.Revision != "abc" || r.Status.Metrics[0].Measured != 2 || r.Status.Metrics[0].Message != "no answer within 10s" || r.Status.Metrics[0].Measurements[0].Value != "1" {
		t.Errorf("got %+v", r.Status)
	}
	want := []metav1.OwnerReference{{APIVersion: "serin.dev/v1alpha1", Kind: "Rollout", Name: "website", UID: "uid", Controller: new(true)}}
	if diff := cmp.Diff(want, r.OwnerReferences); diff != "" {
		t.Error(diff)
	}
}

func TestCountersBecomeWindowsThatKnowTheWeight(t *testing.T) {
	s := play(t, interceptor.Funcs{})
	var requests int64
	s.place.set("a", func(_ context.Context, at time.Time) (source.Sample, error) {
		requests += 10
		return source.Sample{At: at, Counters: &analysis.Scrape{At: at, Pods: map[string]analysis.PodCounters{"p": {Canary: analysis.Variant{Requests: requests}}}}}, nil
	})
	m := metricOf("a")
	m.Compare = &resolve.Comparison{}
	r := releaseOf(m)
	s.Watch(website, r)
	s.until("two windows", func() bool { return len(s.Samples(website)[0].Windows) == 2 })
	r.Weight = analysis.Weight{Percent: 10} // about to change
	s.Watch(website, r)
	asked := s.place.count("a")
	s.until("two more readings", func() bool { return s.place.count("a") >= asked+2 })
	if windows := s.Samples(website)[0].Windows; len(windows) > 3 { // one may have been under way
		t.Errorf("windows closed while the weight changed: %+v", windows)
	}
	r.Weight = analysis.Weight{Percent: 20, Since: s.clock.Now()}
	s.Watch(website, r)
	closed := len(s.Samples(website)[0].Windows)
	s.until("windows of the new weight", func() bool { return len(s.Samples(website)[0].Windows) > closed })
	windows := s.Samples(website)[0].Windows
	for i, w := range windows {
		if w.Canary.Requests != 10 || i > 0 && w.Start.Before(windows[i-1].End) {
			t.Errorf("window %d: %+v", i, w)
		}
	}
	if last := windows[len(windows)-1]; last.Weight != 20 || last.Start.Before(r.Weight.Since) {
		t.Errorf("the last window began before its weight: %+v", last)
	}
	s.until("windows in the result", func() bool {
		r := s.result()
		return len(r.Status.Metrics) == 1 && len(r.Status.Metrics[0].Measurements) > 0 && r.Status.Metrics[0].Measurements[0].Canary.Requests == 10
	})
}

// fresh reports whether nothing was measured before a time. The loop may have measured
// again already: it does not wait for the test.
func fresh(s Series, since time.Time) bool {
	return !slices.ContainsFunc(s.Samples, func(x Sample) bool { return x.At.Before(since) })
}

func TestAChangedMetricBeginsAfreshAndTheOthersStay(t *testing.T) {
	s := play(t, interceptor.Funcs{})
	s.Watch(website, releaseOf(metricOf("a"), metricOf("b")))
	s.until("numbers of both", func() bool {
		list := s.Samples(website)
		return len(list[0].Samples) > 1 && len(list[1].Samples) > 1
	})
	changed := metricOf("a")
	changed.Max = new(5.0)
	s.clock.Step(time.Second)
	since := s.clock.Now()
	s.Watch(website, releaseOf(changed, metricOf("b")))
	if list := s.Samples(website); !fresh(list[0], since) || len(list[1].Samples) < 2 {
		t.Errorf("got %+v", list)
	}
	s.until("numbers of the changed one", func() bool { return len(s.Samples(website)[0].Samples) > 0 })
	next := releaseOf(changed, metricOf("b"))
	next.Revision = "def"
	s.clock.Step(time.Second)
	since = s.clock.Now()
	s.Watch(website, next)
	if list := s.Samples(website); !fresh(list[0], since) || !fresh(list[1], since) {
		t.Errorf("another revision keeps %+v", list)
	}
	s.Forget(website)
	if list := s.Samples(website); list != nil {
		t.Errorf("after the end: %+v", list)
	}
}

func TestASlowMetricHoldsUpNoOther(t *testing.T) {
	s := play(t, interceptor.Funcs{})
	s.place.set("slow", func(ctx context.Context, _ time.Time) (source.Sample, error) {
		<-ctx.Done()
		return source.Sample{}, ctx.Err()
	})
	s.Watch(website, releaseOf(metricOf("slow"), metricOf("fast")))
	s.until("numbers of the fast one", func() bool { return len(s.Samples(website)[1].Samples) > 3 })
	if n := s.place.count("slow"); n != 1 {
		t.Errorf("the slow one was asked %d times", n)
	}
}

func TestWhatCannotBeMeasuredSaysWhy(t *testing.T) {
	s := play(t, interceptor.Funcs{})
	s.place.set("panics", func(context.Context, time.Time) (source.Sample, error) { panic("confidential") })
	s.place.set("counts", func(_ context.Context, at time.Time) (source.Sample, error) {
		return source.Sample{At: at, Counters: &analysis.Scrape{}}, nil
	})
	s.place.set("foreign", func(context.Context, time.Time) (source.Sample, error) {
		return source.Sample{}, errors.New("confidential")
	})
	s.place.set("long", func(context.Context, time.Time) (source.Sample, error) {
		return source.Sample{}, &source.MissingError{Reason: source.NoData, Message: strings.Repeat("ä", 500)}
	})
	compared := metricOf("number")
	compared.Compare = &resolve.Comparison{}
	s.Watch(website, releaseOf(metricOf("broken"), metricOf("panics"), metricOf("counts"), metricOf("foreign"), metricOf("long"), compared))
	s.until("all were measured", func() bool {
		for _, series := range s.Samples(website) {
			if len(series.Samples) == 0 {
				return false
			}
		}
		return true
	})
	want := []string{
		"spec.analysis.metrics[0].provider.web.query: is no PromQL; correct it", "the measurement broke down; please report it",
		"the answer has counters where one number was asked for", "the measurement failed", strings.Repeat("ä", 126) + "…",
		"the answer has one number where counters were asked for",
	}
	for i, series := range s.Samples(website) {
		if sample := series.Samples[0]; sample.Reason == "" || sample.Message != want[i] {
			t.Errorf("%s: %+v", series.Metric.Name, sample)
		}
	}
}

func TestTheSameNumberAgainIsNotAnotherMeasurement(t *testing.T) {
	m := &metric{}
	for range 3 {
		m.add(reading{at: epoch, sample: source.Sample{At: epoch, Value: 1}})
	}
	if len(m.samples) != 1 || m.measured != 1 {
		t.Errorf("got %+v", m.samples)
	}
	m.add(reading{at: epoch, sample: source.Sample{At: epoch.Add(1), Value: 1}})
	if len(m.samples) != 2 {
		t.Errorf("got %+v", m.samples)
	}
}

func TestWhatIsPendingIsOneSampleUntilItsOutcome(t *testing.T) {
	m := &metric{}
	for range 3 {
		m.miss(reading{at: epoch}, &source.MissingError{Reason: source.Pending, Message: "the Job has not ended yet"})
	}
	if len(m.samples) != 1 || m.missing != 0 {
		t.Errorf("got %+v", m.samples)
	}
	pending := m.samples
	m.add(reading{at: epoch, sample: source.Sample{At: epoch, Value: 1}})
	if len(m.samples) != 1 || m.samples[0].Value != 1 || pending[0].Reason != source.Pending {
		t.Errorf("got %+v after %+v", m.samples, pending)
	}
}

func TestMemoryAndResultAreBounded(t *testing.T) {
	r := &release{spec: Release{Problem: strings.Repeat("x", 5000), Revision: strings.Repeat("x", 63)}}
	for i := range 20 {
		m := &metric{spec: resolve.Metric{Name: fmt.Sprint(strings.Repeat("n", 38), i)}}
		if i%2 == 0 {
			m.spec.Compare = &resolve.Comparison{}
		}
		for j := range 3 * Keep {
			at := epoch.Add(time.Duration(j) * 10 * time.Second)
			s := source.Sample{At: at, Value: -1.2345678901234567e-300}
			if m.spec.Compare != nil {
				n := int64(j) << 43
				a := analysis.Variant{Requests: n, Failures: n}
				s.Counters = &analysis.Scrape{At: at, Pods: map[string]analysis.PodCounters{"p": {Canary: a, Stable: a}}}
				m.weight = analysis.Weight{Since: epoch}
			}
			m.add(reading{at: at, sample: s})
		}
		if len(m.samples) > Keep || len(m.windows) > Keep || len(m.samples)+len(m.windows) == 0 {
			t.Errorf("%d samples and %d windows", len(m.samples), len(m.windows))
		}
		m.miss(reading{at: epoch.Add(time.Hour)}, &source.MissingError{Reason: source.SeveralSeries, Message: strings.Repeat("m", 1000)})
		r.metrics = append(r.metrics, m)
	}
	body, err := json.Marshal(makeStatus(r))
	if err != nil || len(body) > 64<<10 || len(body) < 16<<10 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

func TestResultsAreWrittenSeldomAndUntilItWorks(t *testing.T) {
	var mu sync.Mutex
	var writes []time.Time
	var s *fixture
	failing := 2
	s = play(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		mu.Lock()
		defer mu.Unlock()
		if failing > 0 {
			failing--
			return errors.New("the API is away")
		}
		// When the next write may be made: the time of this one would depend on how fast the
		// writer is.
		s.mu.Lock()
		writes = append(writes, s.releases[website].writeAt)
		s.mu.Unlock()
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}})
	often := metricOf("a")
	often.Interval = 5 * time.Second
	s.Watch(website, releaseOf(often))
	s.until("some writes", func() bool { mu.Lock(); defer mu.Unlock(); return len(writes) >= 6 })
	mu.Lock()
	defer mu.Unlock()
	for i := 3; i < len(writes); i++ { // the first two create the object
		if d := writes[i].Sub(writes[i-1]); d < 15*time.Second {
			t.Errorf("written again after %s", d)
		}
	}
}
