// SPDX-License-Identifier: Apache-2.0

package trafficstats_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awalterschulze/gographviz"
	"github.com/awalterschulze/gographviz/ast"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
)

// items are TrafficMetrics as the API sends them.
func items(t *testing.T, texts ...string) (list []metricsv1.TrafficMetrics) {
	t.Helper()
	for _, text := range texts {
		var m metricsv1.TrafficMetrics
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		list = append(list, m)
	}
	return list
}

// item is one with figures; metrics are name=value.
func item(name, edge string, metrics ...string) string {
	var values []string
	for _, m := range metrics {
		key, value, _ := strings.Cut(m, "=")
		values = append(values, `{"name":"`+key+`","value":"`+value+`"}`)
	}
	return `{"kind":"TrafficMetrics","resource":{"kind":"Deployment","namespace":"shop","name":"` + name + `"},` +
		`"edge":` + edge + `,"timestamp":"2019-04-08T22:25:55Z","window":"30s","metrics":[` + strings.Join(values, ",") + `]}`
}

const received = `{"direction":"from","side":"server","resource":{}}`

func TestFiguresForUsers(t *testing.T) {
	tests := []struct {
		name    string
		metrics []string
		want    []string
	}{
		{"the columns of the text", []string{"success_count=54", "failure_count=0", "p99_response_latency=1m"}, []string{"100.00%", "1.8rps", "1ms"}},
		{"failures", []string{"success_count=40", "failure_count=13", "p99_response_latency=2m"}, []string{"75.47%", "1.8rps", "2ms"}},
		{"one failure of very many is no 100%", []string{"success_count=9999999", "failure_count=1"}, []string{"99.99%", "333333.3rps", "-"}},
		{"no request at all has no rate", []string{"success_count=0", "failure_count=0"}, []string{"-", "0.0rps", "-"}},
		{"a count that is missing is not 0", []string{"success_count=10"}, []string{"-", "-", "-"}},
		{"nothing", nil, []string{"-", "-", "-"}},
		{"a latency below a millisecond", []string{"p99_response_latency=250u"}, []string{"-", "-", "250µs"}},
		{"a latency of a second", []string{"p99_response_latency=1500m"}, []string{"-", "-", "1500ms"}},
		{"a latency of a minute", []string{"p99_response_latency=61"}, []string{"-", "-", "1m1s"}},
		{"a latency that is too long to be true", []string{"p99_response_latency=1e18"}, []string{"-", "-", "-"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			list := items(t, item("foo", received, test.metrics...))
			if diff := cmp.Diff(test.want, trafficstats.Read(&list[0]).Cells()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithoutAWindowThereIsNoRate(t *testing.T) {
	one := 1.0
	f := trafficstats.Figures{Success: &one, Failure: &one}
	if _, known := f.RPS(); known {
		t.Error("a rate was made of a window of 0")
	}
	if rate, known := f.SuccessRate(); !known || math.Abs(rate-0.5) > 1e-9 {
		t.Errorf("got %v, %v", rate, known)
	}
}

func TestTrafficThatBothSidesTellOfIsOneRow(t *testing.T) {
	list := items(t,
		item("foo", `{"direction":"from","side":"client","resource":{}}`, "success_count=1", "failure_count=0"),
		item("foo", received, "success_count=2", "failure_count=0"),
		item("foo", `{"direction":"to","side":"client","resource":{}}`, "success_count=3", "failure_count=0"),
		item("foo", `{"direction":"to","side":"server","resource":{}}`, "success_count=4", "failure_count=0"))
	var got []float64
	for _, r := range trafficstats.Rows(list, "") {
		got = append(got, *r.Success)
	}
	if diff := cmp.Diff([]float64{2, 3}, got); diff != "" {
		t.Errorf("the side of the resource itself counts: %s", diff)
	}
	if rows := trafficstats.Rows(list, metricsv1.DirectionTo); len(rows) != 1 || rows[0].Direction != metricsv1.DirectionTo {
		t.Errorf("got %+v", rows)
	}
}

func TestSort(t *testing.T) {
	list := items(t,
		item("a", received, "success_count=90", "failure_count=10", "p99_response_latency=10m"),
		item("b", received, "success_count=10", "failure_count=0", "p99_response_latency=30m"),
		item("c", received),
		item("d", received, "success_count=500", "failure_count=20", "p99_response_latency=20m"))
	for by, want := range map[string]string{"name": "a b c d", "success": "a d b c", "rps": "d a b c", "latency": "b d a c", "failures": "d a b c"} {
		rows := trafficstats.Rows(list, metricsv1.DirectionFrom)
		slices.Reverse(rows)
		trafficstats.Sort(rows, by)
		var got []string
		for _, r := range rows {
			got = append(got, r.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("by %s: got %v, want %s", by, got, want)
		}
	}
}

func TestKindsAreKnownByAllTheirNames(t *testing.T) {
	for _, name := range []string{"deployments", "deployment", "deploy", "Deployment", "deployments.apps"} {
		if k, err := trafficstats.KindOf(name); err != nil || k.Resource != "deployments" {
			t.Errorf("%s: got %v, %v", name, k, err)
		}
	}
	if k, err := trafficstats.KindOf("ts"); err != nil || k.Kind != "TrafficSplit" {
		t.Errorf("got %v, %v", k, err)
	}
	if _, err := trafficstats.KindOf("secrets"); err == nil || !strings.Contains(err.Error(), "trafficsplits") {
		t.Errorf("got %v", err)
	}
}

func edge(direction, side, namespace, name string) string {
	return `{"direction":"` + direction + `","side":"` + side + `","resource":{"kind":"Deployment","namespace":"` + namespace + `","name":"` + name + `"}}`
}

// calls is foo calling bar, as both of them tell, bar calling baz in another
// namespace, and a client calling foo.
func calls(t *testing.T) trafficstats.Graph {
	t.Helper()
	return trafficstats.Build([]trafficstats.Node{{Kind: "Deployment", Namespace: "shop", Name: "idle"}}, items(t,
		item("foo", edge("to", "client", "shop", "bar"), "success_count=1", "failure_count=1"),
		item("bar", edge("from", "server", "shop", "foo"), "success_count=30", "failure_count=0"),
		item("bar", edge("to", "client", "other", `b\"a\\z`), "success_count=3", "failure_count=0"),
		item("foo", received, "success_count=60", "failure_count=0")))
}

func TestTheGraphHasEachEdgeOnceAsItsServerSawIt(t *testing.T) {
	var got []string
	g := calls(t)
	labels := g.Labels()
	for _, e := range g.Edges {
		got = append(got, labels[e.From]+" > "+labels[e.To]+" "+strings.Join(e.Cells(), " "))
	}
	want := []string{
		trafficstats.UnknownClients + " > shop/foo 100.00% 2.0rps -",
		`shop/bar > other/b"a\z 100.00% 0.1rps -`,
		"shop/foo > shop/bar 100.00% 1.0rps -",
	}
	if len(labels) != 5 || labels[trafficstats.Node{Kind: "Deployment", Namespace: "shop", Name: "idle"}] == "" {
		t.Errorf("a node is missing: %v", labels)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDOTIsReadByAParserOfGraphviz(t *testing.T) {
	text := calls(t).DOT()
	graph, err := gographviz.ParseString(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if graph.Type != ast.DIGRAPH || strings.Count(text, " -> ") != 3 {
		t.Errorf("got\n%s", text)
	}
}

func FuzzDOT(f *testing.F) {
	f.Add(`a"; b -> c [label="`)
	f.Add("a\\")
	f.Fuzz(func(t *testing.T, name string) {
		g := trafficstats.Build([]trafficstats.Node{{Kind: "Pod", Name: strings.ToValidUTF8(name, "")}}, nil)
		graph, err := gographviz.ParseString(g.DOT())
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if nodes := graph.StmtList; len(nodes) == 0 {
			t.Errorf("%q makes no node", name)
		}
	})
}

func TestTheTopologyForProgramsLeavesOutWhatWasNotMeasured(t *testing.T) {
	g := trafficstats.Build(nil, items(t,
		item("foo", edge("to", "client", "shop", "bar"), "success_count=15", "failure_count=15", "p99_response_latency=10m"),
		item("bar", edge("to", "client", "shop", "baz"))))
	text, err := json.Marshal(g.Topology().Edges)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"from":{"kind":"Deployment","namespace":"shop","name":"bar"},"to":{"kind":"Deployment","namespace":"shop","name":"baz"}},` +
		`{"from":{"kind":"Deployment","namespace":"shop","name":"foo"},"to":{"kind":"Deployment","namespace":"shop","name":"bar"},"successRate":0.5,"requestsPerSecond":1,"p99Seconds":0.01}]`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	if text, err := json.Marshal(trafficstats.Graph{}.Topology()); err != nil || string(text) != `{"nodes":[],"edges":[]}` {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestATrafficSplitHasARowForEachBackend(t *testing.T) {
	one := items(t, item("web", received, "success_count=1", "failure_count=0"))[0]
	two := one
	one.Backend = &metricsv1.Backend{Apex: "web", Name: "web-v1", Weight: 90}
	two.Backend = &metricsv1.Backend{Apex: "web", Name: "web-v2", Weight: 10}
	rows := trafficstats.Rows([]metricsv1.TrafficMetrics{one, two}, metricsv1.DirectionFrom)
	if len(rows) != 2 || rows[1].Backend.Name != "web-v2" || rows[0].Window != 30*time.Second || rows[0].Other != (corev1.ObjectReference{}) {
		t.Errorf("got %+v", rows)
	}
}
