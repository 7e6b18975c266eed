// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/analysis/source/sourcetest"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// waitLimit is how long a test waits for what must happen.
const waitLimit = time.Minute

// runServer runs a Prometheus that scrapes a target so often.
func runServer(tb testing.TB, target http.Handler, interval string) (address string) {
	tb.Helper()
	exporter := httptest.NewServer(target)
	tb.Cleanup(exporter.Close)
	text := "global: {scrape_interval: " + interval + ", scrape_timeout: " + interval + "}\nscrape_configs:\n- job_name: mesh\n  honor_labels: true\n  static_configs: [{targets: ['" + exporter.Listener.Addr().String() + "']}]\n"
	return sourcetest.Prometheus(tb, text)
}

// mesh counts requests as the proxies of Linkerd do.
type mesh struct {
	registry  *prometheus.Registry
	responses *prometheus.CounterVec
	latency   *prometheus.HistogramVec
}

func newMesh() *mesh {
	labels := []string{"direction", "namespace", "pod", "deployment", "dst_namespace", "dst_pod", "dst_deployment", "authority", "dst_service"}
	m := &mesh{
		registry:  prometheus.NewRegistry(),
		responses: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "response_total", Help: "Responses."}, append(labels, "classification")),
		latency:   prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "response_latency_ms", Help: "Latency.", Buckets: []float64{10, 100}}, labels), //nolint:promlinter // the name is that of Linkerd
	}
	m.registry.MustRegister(m.responses, m.latency)
	return m
}

// request counts what the client's proxy sees of some requests.
func (m *mesh) request(from, pod, service string, success, failure int, ms float64) {
	labels := []string{"outbound", "shop", from, "load", "shop", pod, "web", "web.shop.svc.cluster.local:80", service}
	m.responses.WithLabelValues(append(labels, "success")...).Add(float64(success))
	m.responses.WithLabelValues(append(labels, "failure")...).Add(float64(failure))
	for range success + failure {
		m.latency.WithLabelValues(labels...).Observe(ms)
	}
}

func (m *mesh) handler() http.Handler { return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}) }

// source is one at a Prometheus, with a clock that is set for each window.
func realSource(tb testing.TB, address string, window time.Duration) (*Source, *clocktesting.FakePassiveClock) {
	tb.Helper()
	api, err := NewAPI(Server{Address: address})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := Builtin("linkerd")
	if err != nil {
		tb.Fatal(err)
	}
	c := clocktesting.NewFakePassiveClock(time.Now())
	s, err := New(Options{API: api, Profile: p, Clock: c, Window: window, Timeout: waitLimit})
	if err != nil {
		tb.Fatal(err)
	}
	return s, c
}

// text is what the proxies tell by now.
func (m *mesh) text() string {
	answer := httptest.NewRecorder()
	m.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return answer.Body.String()
}

// totals adds up the requests of flows to a backend over windows that do not overlap.
type totals struct {
	success, failure map[string]float64
	timed            map[string]float64
}

func (w *totals) add(s observe.Snapshot) {
	for _, f := range s.Flows {
		w.success[f.Backend] += f.Success
		w.failure[f.Backend] += f.Failure
		if f.Latency != nil {
			w.timed[f.Backend] += f.Latency.Total
		}
	}
}

// There is a scrape each 200 ms, and the windows are between scrapes.
func TestCountsAgreeWithWhatWasSent(t *testing.T) {
	const window, pause, between = time.Second, 50 * time.Millisecond, 200 * time.Millisecond
	start := time.Now().Add(-time.Hour).Truncate(window)
	end := start.Add(5 * window)
	m, scrapes := newMesh(), &sourcetest.Scrapes{}
	m.request("load-a", "web-1", "web-stable", 1000, 10, 5) // long ago
	m.request("load-a", "web-2", "web-canary", 100, 1, 50)
	sent := 0
	for at := start.Add(-2 * window); !at.After(end); at = at.Add(pause) {
		if at.Sub(start)%between == 0 {
			scrapes.Add(t, "mesh:4191", m.text(), at)
		}
		if at.Before(start.Add(window/2)) || at.After(end.Add(-window)) {
			continue
		}
		sent++
		m.request("load-a", "web-1", "web-stable", 9, 1, 5)
		m.request("load-b", "web-2", "web-canary", 0, 1, 50) // a pair that begins now
		m.request("load-a", "web-2", "web-canary", 3, 1, 50)
	}
	s, c := realSource(t, sourcetest.PrometheusOf(t, scrapes), window)
	sums := &totals{success: map[string]float64{}, failure: map[string]float64{}, timed: map[string]float64{}}
	for at := start.Add(window); !at.After(end); at = at.Add(window) {
		c.SetTime(at.Add(arrival))
		snapshot, err := s.Observe(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if !snapshot.End.Equal(at) {
			t.Fatalf("a window until %v instead of %v", snapshot.End, at)
		}
		sums.add(snapshot)
	}
	sums.check(t, sent)
}

// check compares what was counted with so many times the requests of the test.
func (w *totals) check(t *testing.T, sent int) {
	t.Helper()
	if w.success["web-stable"] != float64(9*sent) || w.failure["web-stable"] != float64(sent) {
		t.Errorf("stable: %v+%v, sent %d+%d", w.success["web-stable"], w.failure["web-stable"], 9*sent, sent)
	}
	if w.timed["web-stable"] != float64(10*sent) {
		t.Errorf("%v requests of stable are timed, of %d", w.timed["web-stable"], 10*sent)
	}
	if got, want := w.success["web-canary"], float64(3*sent); got != want {
		t.Errorf("canary: %v successes, sent %v", got, want)
	}
	if got, want := w.failure["web-canary"], float64(2*sent); got != want {
		t.Errorf("canary: %v failures, sent %v", got, want)
	}
}

// BenchmarkList observes what a thousand pods sent one another, and the slowest of
// the queries that takes.
func BenchmarkList(b *testing.B) {
	const pods = 1000
	m := newMesh()
	send := func() {
		for i := range pods {
			m.request(fmt.Sprintf("load-%d", i), fmt.Sprintf("web-%d", i%10), "web-stable", 2, 1, 5)
		}
	}
	send()
	s, c := realSource(b, runServer(b, m.handler(), "2s"), 4*time.Second)
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(time.Second) {
		send()
		c.SetTime(time.Now())
		snapshot, err := s.Observe(b.Context(), "shop")
		if err == nil && len(snapshot.Flows) == pods {
			break
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d flows, %v", len(snapshot.Flows), err)
		}
	}
	queries, err := s.options.Profile.queries("shop", s.options.Window)
	if err != nil {
		b.Fatal(err)
	}
	end := c.Now().Add(-arrival).Truncate(s.options.Window)
	var slowest, all time.Duration
	for b.Loop() {
		var longest time.Duration
		for _, q := range queries {
			begin := time.Now()
			if _, _, err := s.ask(b.Context(), q.text, end); err != nil {
				b.Fatal(err)
			}
			longest = max(longest, time.Since(begin))
		}
		begin := time.Now()
		if _, err := s.Observe(b.Context(), "shop"); err != nil {
			b.Fatal(err)
		}
		slowest, all = slowest+longest, all+time.Since(begin)
	}
	b.ReportMetric(float64(len(queries)), "queries")
	b.ReportMetric(float64(all.Milliseconds())/float64(b.N), "ms/list")
	b.ReportMetric(float64(slowest.Milliseconds())/float64(b.N), "ms/slowest-query")
}
