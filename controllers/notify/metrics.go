// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// telemetry are the Sender's metrics. Their labels do not grow with the number of
// Rollouts or endpoints. The length of the queue is among the metrics that client-go
// has of every queue: workqueue_depth{name="outbound"}.
type telemetry struct {
	attempts  *prometheus.CounterVec
	duration  prometheus.Histogram
	unsettled prometheus.Gauge
}

func newTelemetry() *telemetry {
	m := &telemetry{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "serin_outbound_attempts_total",
			Help: "Requests sent to hooks and notifications, by outcome: delivered, not_yet, refused, failed.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "serin_outbound_duration_seconds",
			Help:    "Time from the start of an attempt to its answer or its failure.",
			Buckets: []float64{0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10},
		}),
		unsettled: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "serin_outbound_unsettled",
			Help: "Requests that were neither delivered nor refused yet.",
		}),
	}
	for _, o := range []Outcome{Delivered, NotYet, Refused, Failed} {
		m.attempts.WithLabelValues(o.String()) // a rate needs the zero before the first
	}
	return m
}

func (m *telemetry) attempt(o Outcome, d time.Duration) {
	m.attempts.WithLabelValues(o.String()).Inc()
	m.duration.Observe(d.Seconds())
}

// Describe makes the Sender a collector of its own metrics: register it once.
func (s *Sender) Describe(ch chan<- *prometheus.Desc) {
	s.metrics.attempts.Describe(ch)
	s.metrics.duration.Describe(ch)
	s.metrics.unsettled.Describe(ch)
}

// Collect makes the Sender a collector of its own metrics.
func (s *Sender) Collect(ch chan<- prometheus.Metric) {
	s.metrics.attempts.Collect(ch)
	s.metrics.duration.Collect(ch)
	s.metrics.unsettled.Collect(ch)
}
