// SPDX-License-Identifier: Apache-2.0

package counts

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/proxy/exposition"
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// kindDescs describe the metrics of one kind of request. Each kind has metrics of
// its own: only the requests that were split can be compared.
type kindDescs struct{ requests, incomplete, durations *prometheus.Desc }

// describeKind describes one kind. prefix is what the names begin with, and whose
// names the requests in the help.
func describeKind(prefix, whose string) kindDescs {
	return kindDescs{
		requests: describe(exposition.RequestsOf(prefix),
			whose+" that a backend was asked to answer, by final status. 499: the client went away.", exposition.Backend, exposition.Code),
		incomplete: describe(exposition.Prefix+prefix+"requests_incomplete_total",
			whose+" whose answer was not sent to its end, because the backend or the client broke off. Also in "+prefix+"requests_total.", exposition.Backend),
		durations: describe(exposition.DurationsOf(prefix),
			whose+": time from the connection to the backend to the end of its answer.", exposition.Backend),
	}
}

var (
	kindMetrics = map[string]kindDescs{
		accesslog.KindSplit:     describeKind("", "Requests shared by the weights"),
		accesslog.KindUnmatched: describeKind(exposition.UnmatchedKind, "Requests that matched nothing in a split limited by matches"),
		accesslog.KindMirrored:  describeKind("mirrored_", "Mirrored requests, whose answers are thrown away"),
	}
	connectionsDesc = describe(exposition.Prefix+"connections_total",
		"Connections of TCP ports that ended. Code 502: the backend could not be reached.", exposition.Backend, exposition.Code)
	stickyDesc = describe(exposition.Prefix+"sticky_requests_total",
		"Those of requests_total that went where their client's cookie said, instead of being drawn.", exposition.Backend, exposition.Code)
	unroutedDesc = describe(exposition.Prefix+"unrouted_requests_total",
		"Requests that the proxy answered itself, without asking a backend.", exposition.Code)
	refusedDesc = describe(exposition.Refused,
		"Those of unrouted_requests_total that the proxy itself is the cause of: too many were in progress, or it failed.")
	copyDropsDesc = describe(exposition.Prefix+"mirrored_requests_dropped_total",
		"Mirrored requests that were not sent, because too many were on their way.", exposition.Backend)
	droppedDesc = describe(exposition.Prefix+"log_lines_dropped_total",
		"Lines of the access log that could not be understood; the requests are in no other metric.")
	killedDesc = describe(exposition.Prefix+"workers_killed_total",
		"Workers of nginx that ended without being told to. What each had served in its last 0.2 s is in no metric.")
	startDesc = describe(exposition.Start, "Unix time at which counting began.")
)

// Describe sends what can be served.
func (c *Counter) Describe(out chan<- *prometheus.Desc) {
	for _, k := range kindMetrics {
		for _, d := range []*prometheus.Desc{k.requests, k.incomplete, k.durations} {
			out <- d
		}
	}
	for _, d := range []*prometheus.Desc{connectionsDesc, stickyDesc, flowRequestsDesc, flowDurationsDesc, flowFoldedDesc, unroutedDesc, refusedDesc, copyDropsDesc, droppedDesc, killedDesc, startDesc} {
		out <- d
	}
}

// Collect sends the counts of one moment.
func (c *Counter) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.snapshot() {
		out <- m
	}
}

// snapshot copies the counts while nothing else is counted.
func (c *Counter) snapshot() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.state
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
	add(refusedDesc, s.Refused)
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
