// SPDX-License-Identifier: Apache-2.0

package trafficstats_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
)

func TestWhatIsSentIsTheSumOfTheEdges(t *testing.T) {
	to := func(name string, metrics ...string) string {
		return item("foo", edge("to", "client", "shop", name), metrics...)
	}
	from := item("foo", edge("from", "server", "shop", "load"), "success_count=50", "failure_count=0")
	later := strings.Replace(to("baz", "success_count=1", "failure_count=1"), "22:25:55Z", "22:26:25Z", 1)
	tests := []struct {
		name  string
		edges []string
		want  []string // nil for nothing
	}{
		{"nothing", nil, nil},
		{"what it receives is not sent", []string{from}, nil},
		{"one edge with its latency", []string{from, to("bar", "success_count=10", "failure_count=5", "p99_response_latency=10m")}, []string{"66.66%", "0.5rps", "10ms"}},
		{"of several, latencies are not known", []string{to("bar", "success_count=10", "failure_count=5", "p99_response_latency=10m"), to("baz", "success_count=14", "failure_count=1", "p99_response_latency=10m")}, []string{"80.00%", "1.0rps", "-"}},
		{"an edge that both ends tell of counts once", []string{item("foo", edge("to", "server", "shop", "bar"), "success_count=9", "failure_count=0"), to("bar", "success_count=15", "failure_count=15")}, []string{"50.00%", "1.0rps", "-"}},
		{"what it receives from itself", []string{from, item("foo", edge("from", "server", "shop", "foo"), "success_count=30", "failure_count=0")}, []string{"100.00%", "1.0rps", "-"}},
		{"a count that is missing in one is not known of all", []string{to("bar", "success_count=10", "failure_count=0"), to("baz", "success_count=10")}, []string{"-", "-", "-"}},
		{"windows that differ can't be added", []string{to("bar", "success_count=10", "failure_count=0"), later}, []string{"-", "-", "-"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sum := trafficstats.Sent(items(t, test.edges...))
			if sum == nil {
				if test.want != nil {
					t.Error("nothing is sent")
				}
				return
			}
			if diff := cmp.Diff(test.want, trafficstats.Read(sum).Cells()); diff != "" || sum.Edge.Direction != metricsv1.DirectionTo || sum.Edge.Resource.Name != "" {
				t.Errorf("%+v: %s", sum.Edge, diff)
			}
		})
	}
}

func TestReceivedHasWhatOnlySends(t *testing.T) {
	sent := `{"direction":"to","side":"client","resource":{}}`
	var got []string
	for _, m := range trafficstats.Received(items(t, item("load", sent), item("web", sent), item("web", received), item("db", received))) {
		got = append(got, m.Resource.Name+" "+string(m.Edge.Direction))
	}
	if diff := cmp.Diff([]string{"load to", "web from", "db from"}, got); diff != "" {
		t.Error(diff)
	}
}
