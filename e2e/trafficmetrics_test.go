// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/judgement"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// metricsSlack is how far the ends of a window may be off: the proxies are asked one after
// another, and the time of a window is when that was done. Which requests are counted, and how
// they are shared, has to be right whatever the time.
const metricsSlack = 500 * time.Millisecond

// TestTrafficMetrics compares what the API of TrafficMetrics tells of a split, and of the edges
// of the load generator, with what the load generator has counted: what is scraped at the
// proxies, and what a real Prometheus has stored of them.
func TestTrafficMetrics(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-metrics", "split")
		s.startSplit()
		s.begin()
		scraped := s.metrics.scraped(a)
		s.cutOver()
		half := map[string]float64{"website-v1": 0.5, "website-v2": 0.5}
		s.requireMetrics(half)
		scraped()
		s.storeMetrics("nginx", conf.AgentPort, client.InNamespace(s.namespace), client.HasLabels{traffic.LabelProxy})
		s.requireMetrics(half)
		s.restore()
		s.requireAsBefore(true)
		s.endLoad()
		s.judge()
	})
}

// requireMetrics compares what is told of the next window with what was sent in it.
func (s *site) requireMetrics(weights map[string]float64) {
	s.t.Helper()
	split, edges, reports := s.nextWindow()
	told := float64(requireConsistent(s.t, split.Items, edges.Items, weights))
	item := split.Items[0]
	end := item.Timestamp.Time
	made := sentBy(reports, end) - sentBy(reports, end.Add(-item.Window.Duration))
	s.t.Logf("in a window of %s TrafficMetrics tell of %.0f requests; the load generator made %.0f", item.Window.Duration, told, made)
	if slack := 2 * metricsSlack.Seconds() * made / item.Window.Seconds(); math.Abs(told-made) > slack {
		s.t.Errorf("TrafficMetrics tell of %.0f requests, and the load generator made %.0f; at most %.0f are explained by the ends of the window", told, made, slack)
	}
}

// nextWindow waits for a window of traffic that begins after now, and returns what is told of
// it, and reports of the load from before until after it.
func (s *site) nextWindow() (split, edges metricsv1.TrafficMetricsList, reports []generator.Report) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		reports = append(reports, s.loadReport())
		begun := reports[0].Time
		if whollyAfter(begun, split) && whollyAfter(begun, edges) && split.Items[0].Timestamp.Equal(&edges.Items[0].Timestamp) {
			return reports[len(reports)-1].Time.After(split.Items[0].Timestamp.Time), nil
		}
		s.trafficMetrics(ctx, "trafficsplits", &split)
		s.trafficMetrics(ctx, "deployments/load/edges", &edges)
		return false, nil
	})
	if err != nil {
		s.t.Fatalf("no window of traffic was told: %v; the split: %+v; the edges of the load: %+v", err, split.Items, edges.Items)
	}
	return split, edges, reports
}

// sentBy is how many requests the load generator had sent at a time, between two of the
// reports in proportion.
func sentBy(reports []generator.Report, at time.Time) float64 {
	i := slices.IndexFunc(reports, func(r generator.Report) bool { return r.Time.After(at) })
	before, after := reports[i-1], reports[i]
	part := float64(at.Sub(before.Time)) / float64(after.Time.Sub(before.Time))
	return float64(before.Sent) + part*float64(after.Sent-before.Sent)
}

// requireConsistent fails the test when what TrafficMetrics tell of a window does not fit
// together, or with the weights, or has failures. It returns how many requests they tell of.
func requireConsistent(t *attempt, split, edges []metricsv1.TrafficMetrics, weights map[string]float64) (all int64) {
	t.Helper()
	told := map[string]int64{}
	for _, item := range split {
		n := count(t, item, metricsv1.MetricSuccessCount)
		told[item.Backend.Name] = n
		all += n
		if failed := count(t, item, metricsv1.MetricFailureCount); failed != 0 {
			t.Errorf("TrafficMetrics tell of %d failed requests to %s, and none did", failed, item.Backend.Name)
		}
	}
	t.Logf("TrafficMetrics tell of these requests to the backends: %v", told)
	for backend, share := range weights {
		if !judgement.Plausible(told[backend], all, share) {
			t.Errorf("TrafficMetrics tell of %d requests to %s of %d, and its share is %g", told[backend], backend, all, share)
		}
	}
	for _, edge := range edges {
		other := edge.Edge.Resource.Name // the Deployments are called as the Services are
		if n := count(t, edge, metricsv1.MetricSuccessCount); n != told[other] {
			t.Errorf("the edge from the load generator to %q has %d requests, and the backend %d", other, n, told[other])
		}
		delete(told, other)
	}
	if len(told) > 0 {
		t.Errorf("the load generator has no edges to %v", told)
	}
	return all
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
func count(t *attempt, item metricsv1.TrafficMetrics, name string) int64 {
	t.Helper()
	for _, metric := range item.Metrics {
		if metric.Name == name {
			return metric.Value.Value()
		}
	}
	t.Fatalf("%s has no %s", item.Resource.Name, name)
	return 0
}
