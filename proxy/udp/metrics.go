// SPDX-License-Identifier: Apache-2.0

package udp

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/serin-dev/serin/proxy/exposition"
)

// metrics are those of sessions that ended, and of those that are open.
type metrics struct {
	sessions *prometheus.CounterVec
	open     *prometheus.GaugeVec
	lost     prometheus.Counter
}

func newMetrics() metrics {
	return metrics{
		sessions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: exposition.Prefix + "sessions_total", Help: "Sessions of UDP ports that ended. Code 502: the backend refused.",
		}, []string{exposition.Backend, exposition.Code}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: exposition.Prefix + "open_sessions", Help: "Sessions of UDP ports that are remembered.",
		}, []string{exposition.Backend}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: exposition.Prefix + "datagrams_lost_total",
			Help: "Datagrams that could not be passed on, because no backend has weight or the network refused them.",
		}),
	}
}

// Collectors are the metrics, to be registered.
func (d *Ports) Collectors() []prometheus.Collector {
	return []prometheus.Collector{d.metrics.sessions, d.metrics.open, d.metrics.lost}
}
