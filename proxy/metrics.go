// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/accesslog"
)

// Results of applying a configuration.
const (
	resultSuccess = "success"
	resultFailure = "failure"
)

// metrics is what the agent counts and serves. The counts of requests are a
// counter's, which outlast the agent; the others begin anew with each.
type metrics struct {
	registry   *prometheus.Registry
	requests   *requestCounter
	backends   *prometheus.GaugeVec
	generation prometheus.Gauge
	reloads    *prometheus.CounterVec
	updates    prometheus.Counter
	restarts   prometheus.Counter
	// sessions of UDP that ended, and those that are open.
	sessions      *prometheus.CounterVec
	openSessions  *prometheus.GaugeVec
	lostDatagrams prometheus.Counter
}

func newMetrics(file string, c clock.PassiveClock) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: newCounter(file, c),
		backends: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "backend_info", Help: "1 for each backend of the configuration in effect.",
		}, []string{"backend"}),
		generation: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "generation", Help: "Generation of the TrafficSplit that is in effect.",
		}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "reloads_total",
			Help: "Configurations that nginx was started with, by result.",
		}, []string{"result"}),
		updates: counter("weight_updates_total", "Tables of weights that were put in effect without a reload."),
		restarts: counter("nginx_restarts_total",
			"Times that nginx had ended by itself and was started again."),
		sessions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "sessions_total",
			Help: "Sessions of UDP ports that ended. Code 502: the backend refused.",
		}, []string{"backend", "code"}),
		openSessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "open_sessions", Help: "Sessions of UDP ports that are remembered.",
		}, []string{"backend"}),
		lostDatagrams: counter("datagrams_lost_total",
			"Datagrams that could not be passed on, because no backend has weight or the network refused them."),
	}
	m.registry.MustRegister(m.sessions, m.openSessions, m.lostDatagrams)
	m.registry.MustRegister(m.backends, m.generation, m.reloads, m.updates, m.restarts, &counterCollector{m.requests})
	for _, result := range []string{resultSuccess, resultFailure} {
		m.reloads.WithLabelValues(result)
	}
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help})
}

// inEffect publishes the backends of a configuration and its generation.
func (m *metrics) inEffect(services map[string]string, generation int64) {
	m.backends.Reset()
	for _, service := range services {
		m.backends.WithLabelValues(service).Set(1)
	}
	m.requests.serve(services)
	m.generation.Set(float64(generation))
}

// All metrics begin with these.
const namespace, subsystem = "serin", "proxy"

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, labels, nil)
}

// kindDescs describe the metrics of one kind of request. Each kind has metrics of
// its own: only the requests that were split can be compared.
type kindDescs struct{ requests, incomplete, durations *prometheus.Desc }

// describeKind describes one kind. prefix is what the names begin with, and whose
// names the requests in the help.
func describeKind(prefix, whose string) kindDescs {
	return kindDescs{
		requests: describe(prefix+"requests_total",
			whose+" that a backend was asked to answer, by final status. 499: the client went away.", "backend", "code"),
		incomplete: describe(prefix+"requests_incomplete_total",
			whose+" whose answer was not sent to its end, because the backend or the client broke off. Also in "+prefix+"requests_total.", "backend"),
		durations: describe(prefix+"request_duration_seconds",
			whose+": time from the connection to the backend to the end of its answer.", "backend"),
	}
}

var (
	kindMetrics = map[string]kindDescs{
		accesslog.KindSplit:     describeKind("", "Requests shared by the weights"),
		accesslog.KindUnmatched: describeKind("unmatched_", "Requests that matched nothing in a split limited by matches"),
		accesslog.KindMirrored:  describeKind("mirrored_", "Copies of requests, whose answers nobody gets"),
	}
	connectionsDesc = describe("connections_total",
		"Connections of TCP ports that ended. Code 502: the backend could not be reached.", "backend", "code")
	stickyDesc = describe("sticky_requests_total",
		"Those of requests_total that went where their client's cookie said, instead of being drawn.", "backend", "code")
	unroutedDesc = describe("unrouted_requests_total",
		"Requests that the proxy answered itself, without asking a backend.", "code")
	copyDropsDesc = describe("mirrored_requests_dropped_total",
		"Copies of requests that were not sent, because too many were on their way.", "backend")
	droppedDesc = describe("log_lines_dropped_total",
		"Lines of the access log that could not be understood; the requests are in no other metric.")
	killedDesc = describe("workers_killed_total",
		"Workers of nginx that ended without being told to. What each had served in its last 0.2 s is in no metric.")
	startDesc = describe("start_time_seconds", "Unix time at which counting began.")
)

// counterCollector serves what a counter counted.
type counterCollector struct{ counter *requestCounter }

// Describe sends what can be served.
func (counterCollector) Describe(out chan<- *prometheus.Desc) {
	for _, k := range kindMetrics {
		for _, d := range []*prometheus.Desc{k.requests, k.incomplete, k.durations} {
			out <- d
		}
	}
	for _, d := range []*prometheus.Desc{connectionsDesc, stickyDesc, flowRequestsDesc, flowDurationsDesc, flowFoldedDesc, unroutedDesc, copyDropsDesc, droppedDesc, killedDesc, startDesc} {
		out <- d
	}
}

// Collect sends the counts of one moment.
func (c counterCollector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.counts() {
		out <- m
	}
}

// counts copies the counts while nothing else is counted.
func (c counterCollector) counts() []prometheus.Metric {
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	s := &c.counter.state
	var out []prometheus.Metric
	add := func(d *prometheus.Desc, n uint64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...))
	}
	for kind, descs := range kindMetrics {
		for service, counts := range s.Kinds[kind] {
			for code, n := range counts.Requests {
				add(descs.requests, n, service, code)
			}
			if counts.Incomplete > 0 {
				add(descs.incomplete, counts.Incomplete, service)
			}
			out = append(out, counts.histogram(descs.durations, service))
		}
	}
	for kind, d := range map[string]*prometheus.Desc{accesslog.KindConnection: connectionsDesc, accesslog.KindSticky: stickyDesc} {
		for service, counts := range s.Kinds[kind] {
			for code, n := range counts.Requests {
				add(d, n, service, code)
			}
		}
	}
	out = append(out, s.flowMetrics()...)
	for code, n := range s.Unrouted {
		add(unroutedDesc, n, code)
	}
	for service, n := range s.CopyDrops {
		add(copyDropsDesc, n, service)
	}
	add(flowFoldedDesc, s.Flows.Folded)
	add(droppedDesc, s.Dropped)
	add(killedDesc, s.Killed)
	return append(out, prometheus.MustNewConstMetric(startDesc, prometheus.GaugeValue, s.Start))
}

// histogram is the durations as Prometheus has them: each bucket with those below it.
func (c *serviceCounts) histogram(d *prometheus.Desc, service string) prometheus.Metric {
	return histogram(d, durationBounds, c.Buckets, c.Millis, service)
}

// histogram is counts as Prometheus has them. The last of them are above all bounds.
func histogram(d *prometheus.Desc, bounds []float64, counts []uint64, millis uint64, labels ...string) prometheus.Metric {
	buckets, total := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, n := range counts {
		total += n
		if i < len(bounds) {
			buckets[bounds[i]] = total
		}
	}
	return prometheus.MustNewConstHistogram(d, total, float64(millis)/1000, buckets, labels...)
}
