// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

const (
	// metricsPatience is how long the first whole window of traffic may take: three
	// windows, since the first may have begun before the split.
	metricsPatience = time.Minute
	// metricsTolerance is by what fraction the counts of a window may differ from what
	// the load generator makes in as much time, whose own pace is not quite even.
	metricsTolerance = 0.05
	// shareTolerance is how far a backend's share of the requests of a window may be from
	// its weight: five standard deviations at 15,000 requests.
	shareTolerance = 0.02
)

// requireMetrics compares what the API of TrafficMetrics tells of the split, and of the
// edges of the load generator, with what the load generator has counted.
func (s *site) requireMetrics(weights map[string]float64) {
	s.t.Helper()
	first := s.loadReport()
	var split, edges metricsv1.TrafficMetricsList
	err := wait.PollUntilContextTimeout(s.t.Context(), time.Second, metricsPatience, true, func(ctx context.Context) (bool, error) {
		s.trafficMetrics(ctx, "trafficsplits", &split)
		s.trafficMetrics(ctx, "deployments/load/edges", &edges)
		return whollyAfter(first.Time, split) && whollyAfter(first.Time, edges) && split.Items[0].Timestamp.Equal(&edges.Items[0].Timestamp), nil
	})
	if err != nil {
		s.t.Fatalf("no window of traffic was told: %v; the split: %+v; the edges of the load: %+v", err, split.Items, edges.Items)
	}
	last := s.loadReport()
	if why := hindrance(s.t, first, last); why != "" {
		s.t.Logf("what TrafficMetrics tell is not judged: %s", why)
		return
	}
	pace := float64(last.Sent-first.Sent) / last.Time.Sub(first.Time).Seconds()
	expected := pace * split.Items[0].Window.Seconds()
	told := map[string]int64{}
	var all int64
	for _, item := range split.Items {
		n := count(s.t, item, metricsv1.MetricSuccessCount)
		told[item.Backend.Name] = n
		all += n
		if failed := count(s.t, item, metricsv1.MetricFailureCount); failed != 0 {
			s.t.Errorf("%d requests to %s are told to have failed, and none did", failed, item.Backend.Name)
		}
	}
	s.t.Logf("in a window of %s TrafficMetrics tell %v; the load generator made %.0f", split.Items[0].Window.Duration, told, expected)
	if math.Abs(float64(all)-expected) > metricsTolerance*expected {
		s.t.Errorf("TrafficMetrics tell of %d requests, and the load generator made %.0f in as much time", all, expected)
	}
	for backend, share := range weights {
		if math.Abs(float64(told[backend])/float64(all)-share) > shareTolerance {
			s.t.Errorf("TrafficMetrics tell of %d requests to %s of %d, and its share is %g", told[backend], backend, all, share)
		}
	}
	for _, edge := range edges.Items {
		other := edge.Edge.Resource.Name // the Deployments are called as the Services are
		if n := count(s.t, edge, metricsv1.MetricSuccessCount); n != told[other] {
			s.t.Errorf("the edge from the load generator to %q has %d requests, and the backend %d", other, n, told[other])
		}
		delete(told, other)
	}
	if len(told) > 0 {
		s.t.Errorf("the load generator has no edges to %v", told)
	}
}

// trafficMetrics asks the API for a list in the namespace. It may be empty, or not there
// yet.
func (s *site) trafficMetrics(ctx context.Context, path string, into *metricsv1.TrafficMetricsList) {
	s.t.Helper()
	*into = metricsv1.TrafficMetricsList{}
	content, err := s.core.Discovery().RESTClient().Get().
		AbsPath("/apis/metrics.smi-spec.io/v1alpha1/namespaces", s.namespace, path).DoRaw(ctx)
	if err != nil {
		s.t.Logf("TrafficMetrics of %s: %v", path, err)
		return
	}
	if err := json.Unmarshal(content, into); err != nil {
		s.t.Fatalf("TrafficMetrics of %s: %v", path, err)
	}
}

// whollyAfter is true for a list of items whose window began after a time.
func whollyAfter(begun time.Time, list metricsv1.TrafficMetricsList) bool {
	return len(list.Items) > 0 && list.Items[0].Timestamp.Add(-list.Items[0].Window.Duration).After(begun)
}

// count is the value of one metric, which is a whole number.
func count(t *testing.T, item metricsv1.TrafficMetrics, name string) int64 {
	t.Helper()
	for _, metric := range item.Metrics {
		if metric.Name == name {
			return metric.Value.Value()
		}
	}
	t.Fatalf("%s has no %s", item.Resource.Name, name)
	return 0
}
