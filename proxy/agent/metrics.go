// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/serin-dev/serin/proxy/exposition"
)

// metrics are those of the configurations. They begin anew with each agent, while the
// counts of requests outlast it.
type metrics struct {
	backends   *prometheus.GaugeVec
	generation prometheus.Gauge
	reloads    *prometheus.CounterVec
	updates    prometheus.Counter
	restarts   prometheus.Counter
}

// newMetrics registers them with those of others.
func newMetrics(others ...prometheus.Collector) (*metrics, *prometheus.Registry) {
	m := &metrics{
		backends: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: exposition.BackendInfo, Help: "1 for each backend of the live configuration.",
		}, []string{exposition.Backend}),
		generation: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: exposition.Prefix + "generation", Help: "Generation of the TrafficSplit that is live.",
		}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: exposition.Prefix + "reloads_total", Help: "Configurations that nginx was started with, by result.",
		}, []string{exposition.Result}),
		updates:  counter("weight_updates_total", "Tables of weights that went live without a reload."),
		restarts: counter("nginx_restarts_total", "Times that nginx had ended by itself and was started again."),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(others, m.backends, m.generation, m.reloads, m.updates, m.restarts)...)
	for _, result := range []string{exposition.Success, exposition.Failure} {
		m.reloads.WithLabelValues(result)
	}
	return m, registry
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: exposition.Prefix + name, Help: help})
}

// serve publishes the backends of a configuration and its generation.
func (m *metrics) serve(services map[string]string, generation int64) {
	m.backends.Reset()
	for _, service := range services {
		m.backends.WithLabelValues(service).Set(1)
	}
	m.generation.Set(float64(generation))
}
