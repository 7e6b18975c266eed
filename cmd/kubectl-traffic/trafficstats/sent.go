// SPDX-License-Identifier: Apache-2.0

package trafficstats

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// Sent is what one resource sends, as the sum of its edges; nil if it sends nothing. The
// counts are left out when one of them is not known or they are not of one window, and
// the latencies when there are several edges: quantiles can't be added.
func Sent(edges []metricsv1.TrafficMetrics) *metricsv1.TrafficMetrics {
	sent := oneSide(edges)
	if len(sent) == 0 {
		return nil
	}
	sum := *sent[0].DeepCopy()
	sum.Edge.Direction, sum.Edge.Resource = metricsv1.DirectionTo, &corev1.ObjectReference{}
	if len(sent) == 1 {
		return &sum
	}
	sum.Metrics = nil
	for i := range sent {
		if sent[i].Window != sum.Window || !sent[i].Timestamp.Equal(&sum.Timestamp) {
			return &sum
		}
	}
	for _, name := range []string{metricsv1.MetricSuccessCount, metricsv1.MetricFailureCount} {
		if total, known := add(sent, name); known {
			sum.Metrics = append(sum.Metrics, total)
		}
	}
	return &sum
}

// oneSide are the edges of what is sent, each once: where both ends tell of one, by the
// side of the resource itself. What it receives from itself it has sent.
func oneSide(edges []metricsv1.TrafficMetrics) []metricsv1.TrafficMetrics {
	at := map[corev1.ObjectReference]int{}
	var sent []metricsv1.TrafficMetrics
	for i := range edges {
		m := &edges[i]
		if m.Edge.Direction != metricsv1.DirectionTo && NodeOf(other(m)) != NodeOf(m.Resource) {
			continue
		}
		known, found := at[other(m)]
		switch {
		case !found:
			at[other(m)] = len(sent)
			sent = append(sent, *m)
		case ownSide(m):
			sent[known] = *m
		}
	}
	return sent
}

// add adds up a count.
func add(items []metricsv1.TrafficMetrics, name string) (metricsv1.Metric, bool) {
	var total metricsv1.Metric
	for i := range items {
		at := slices.IndexFunc(items[i].Metrics, func(m metricsv1.Metric) bool { return m.Name == name })
		if at < 0 {
			return metricsv1.Metric{}, false
		}
		if i == 0 {
			total = *items[i].Metrics[at].DeepCopy()
			continue
		}
		total.Value.Add(items[i].Metrics[at].Value)
	}
	return total, true
}
