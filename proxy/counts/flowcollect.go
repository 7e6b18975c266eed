// SPDX-License-Identifier: Apache-2.0

package counts

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/proxy/exposition"
)

// flowLabels tell a pair of a client and a backend. The server is the pod that answered,
// which is not known behind the address of a Service.
var flowLabels = []string{exposition.Namespace, exposition.Apex, exposition.Backend, exposition.Client, exposition.Server}

var (
	flowRequestsDesc = describe(exposition.FlowRequests,
		"Requests by who sent them, without mirrored ones and those that the client gave up, by whether a backend failed. "+
			"Without apex: requests that matched nothing. Without client: of those who are too many to count one by one.",
		append(slices.Clone(flowLabels), exposition.Result)...)
	flowDurationsDesc = describe(exposition.FlowDurations,
		"The requests of flow_requests_total: time from the connection to the backend to the end of its answer.", flowLabels...)
	flowFoldedDesc = describe(exposition.Prefix+"flow_requests_folded_total",
		"Those of flow_requests_total whose client is not told, because there were too many.")
)

// flowMetrics are the counts of all pairs.
func (s *state) flowMetrics() []prometheus.Metric {
	var out []prometheus.Metric
	for kind, services := range s.Flows.Pairs {
		apex := ""
		if kind == accesslog.KindSplit {
			apex = s.Root.Name
		}
		for service, clients := range services {
			for client, p := range clients {
				address := ""
				if client.IsValid() {
					address = client.String()
				}
				out = append(out, p.metrics(s.Root.Namespace, apex, service, address, "")...)
			}
		}
	}
	return out
}

// metrics are the counts of one pair, with the values of flowLabels. What did not
// happen is 0, not absent.
func (p *pair) metrics(labels ...string) []prometheus.Metric {
	result := func(n uint64, result string) prometheus.Metric {
		return prometheus.MustNewConstMetric(flowRequestsDesc, prometheus.CounterValue, float64(n), append(slices.Clone(labels), result)...)
	}
	return []prometheus.Metric{
		result(p.Success, exposition.Success), result(p.Failure, exposition.Failure),
		histogram(flowDurationsDesc, flowBounds[:], p.Buckets[:], p.Millis, labels...),
	}
}
