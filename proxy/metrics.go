// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/controllers/traffic/nginx"
)

// durationBounds are the upper bounds of the latency histogram, in seconds.
// nginx measures in milliseconds, so there is nothing to tell apart below one.
var durationBounds = []float64{
	0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075,
	0.1, 0.15, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 30, 60,
}

// Results of applying a configuration.
const (
	resultSuccess = "success"
	resultFailure = "failure"
)

// metrics is what the agent counts and serves.
type metrics struct {
	registry *prometheus.Registry
	// kinds are the counts of requests by their kind in the access log. Each kind has
	// metrics of its own: only the requests that were split can be compared.
	kinds      map[string]counts
	unrouted   *prometheus.CounterVec
	copyDrops  *prometheus.CounterVec
	backends   *prometheus.GaugeVec
	generation prometheus.Gauge
	reloads    *prometheus.CounterVec
	updates    *prometheus.CounterVec
	dropped    prometheus.Counter
	start      prometheus.Gauge

	mu sync.Mutex
	// services are the names behind the IDs of the access log. None is ever
	// forgotten, because a line may come late.
	services map[string]string
}

// counts are the metrics of one kind of request.
type counts struct {
	requests   *prometheus.CounterVec
	incomplete *prometheus.CounterVec
	durations  *prometheus.HistogramVec
}

// makeCounts makes the metrics of one kind. prefix is what their names begin with,
// and whose names the requests in their help.
func makeCounts(prefix, whose string) counts {
	return counts{
		requests: counterVec(prefix+"requests_total",
			whose+" that a backend was asked to answer, by final status. 499: the client went away.", "backend", "code"),
		incomplete: counterVec(prefix+"requests_incomplete_total",
			whose+" whose answer was not sent to its end, because the backend or the client broke off. Also in "+prefix+"requests_total.", "backend"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "serin", Subsystem: "proxy", Name: prefix + "request_duration_seconds", Buckets: durationBounds,
			Help: whose + ": time from the connection to the backend to the end of its answer.",
		}, []string{"backend"}),
	}
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "serin", Subsystem: "proxy", Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "serin", Subsystem: "proxy", Name: name, Help: help})
}

func newMetrics(c clock.PassiveClock) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		kinds: map[string]counts{
			nginx.KindSplit:     makeCounts("", "Requests shared by the weights"),
			nginx.KindUnmatched: makeCounts("unmatched_", "Requests that matched nothing in a split limited by matches"),
			nginx.KindMirrored:  makeCounts("mirrored_", "Copies of requests, whose answers nobody gets"),
		},
		unrouted: counterVec("unrouted_requests_total",
			"Requests that the proxy answered itself, without asking a backend.", "code"),
		copyDrops: counterVec("mirrored_requests_dropped_total",
			"Copies of requests that were not sent, because too many were on their way.", "backend"),
		backends: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "serin", Subsystem: "proxy", Name: "backend_info", Help: "1 for each backend of the configuration in effect.",
		}, []string{"backend"}),
		generation: gauge("generation", "Generation of the TrafficSplit that is in effect."),
		reloads:    counterVec("reloads_total", "Configurations that nginx was started or reloaded with, by result.", "result"),
		updates:    counterVec("weight_updates_total", "Tables of weights that were put in effect without a reload."),
		dropped: counterVec("log_lines_dropped_total",
			"Lines of the access log that could not be understood; the requests are in no other metric.").WithLabelValues(),
		start:    gauge("start_time_seconds", "Unix time at which counting began."),
		services: map[string]string{},
	}
	m.registry.MustRegister(m.unrouted, m.copyDrops, m.backends, m.generation, m.reloads, m.updates, m.dropped, m.start)
	for _, k := range m.kinds {
		m.registry.MustRegister(k.requests, k.incomplete, k.durations)
	}
	m.start.Set(float64(c.Now().UnixNano()) / 1e9)
	for _, result := range []string{resultSuccess, resultFailure} {
		m.reloads.WithLabelValues(result)
	}
	m.updates.WithLabelValues()
	return m
}

// know remembers the names behind IDs before nginx can write the IDs.
func (m *metrics) know(services map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.services, services)
}

// inEffect publishes the backends of a configuration and its generation.
func (m *metrics) inEffect(services map[string]string, generation int64) {
	m.backends.Reset()
	for _, service := range services {
		m.backends.WithLabelValues(service).Set(1)
		m.kinds[nginx.KindSplit].durations.WithLabelValues(service) // a backend without requests has a count of 0, not none
	}
	m.generation.Set(float64(generation))
}

// count adds a line of the access log.
func (m *metrics) count(line []byte) {
	r, err := parseRecord(line)
	if err != nil {
		m.dropped.Inc()
		return
	}
	if r.backend == "" {
		m.unrouted.WithLabelValues(r.code).Inc()
		return
	}
	m.mu.Lock()
	service, known := m.services[r.backend]
	m.mu.Unlock()
	if !known {
		m.dropped.Inc()
		return
	}
	if r.kind == nginx.KindDropped {
		m.copyDrops.WithLabelValues(service).Inc()
		return
	}
	m.kinds[r.kind].count(service, r)
}

func (c counts) count(service string, r record) {
	c.requests.WithLabelValues(service, r.code).Inc()
	if r.seconds >= 0 {
		c.durations.WithLabelValues(service).Observe(r.seconds)
	}
	if !r.complete {
		c.incomplete.WithLabelValues(service).Inc()
	}
}
