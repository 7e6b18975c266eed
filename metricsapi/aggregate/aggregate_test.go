// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/traffic"
)

// line is an item in a form that is easy to read.
func line(m metricsv1.TrafficMetrics) string {
	var b strings.Builder
	if m.Namespace != "" {
		b.WriteString(m.Namespace + "/")
	}
	fmt.Fprintf(&b, "%s %s/%s", m.Name, m.Edge.Direction, m.Edge.Side)
	if o := m.Edge.Resource; o.Kind+o.Namespace+o.Name != "" {
		fmt.Fprintf(&b, " %s %s/%s", o.Kind, o.Namespace, o.Name)
	}
	if m.Backend != nil {
		fmt.Fprintf(&b, " [%s→%s %d]", m.Backend.Apex, m.Backend.Name, m.Backend.Weight)
	}
	for _, v := range m.Metrics {
		fmt.Fprintf(&b, " %s=%s", strings.TrimSuffix(strings.TrimSuffix(v.Name, "_response_latency"), "_count"), v.Value.String())
	}
	return b.String()
}

func lines(items []metricsv1.TrafficMetrics) []string {
	out := []string{}
	for _, m := range items {
		out = append(out, line(m))
	}
	return out
}

func request(kind observe.Kind, name string) observe.Request {
	r := observe.Request{Kind: kind, Namespace: "shop", Name: name, Selector: labels.Everything()}
	if !kind.Namespaced {
		r.Namespace = ""
	}
	return r
}

// usual traffic: the generator and a caller of another namespace through the split, and
// web to the database, which no split has.
func usual() observe.Snapshot {
	toDB := observe.Flow{Side: metricsv1.SideClient, Client: at("10.0.0.1"), Server: inShop("10.0.0.4"), Success: 5}
	return snapshot(
		split("10.0.0.3", "web-stable", "10.0.0.1", 80, 10),
		split("10.0.0.3", "web-canary", "10.0.0.2", 8, 2),
		split("10.0.1.1", "web-stable", "10.0.0.1", 20, 0),
		split("192.0.2.7", "web-stable", "10.0.0.1", 1, 0),
		toDB,
	)
}

func TestMetrics(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    observe.Request
		want []string
	}{
		{"pods have what they received, and those that only send what they sent", request(observe.Pods, ""), []string{
			"shop/db-0 from/client success=5 failure=0",
			"shop/load-a to/client p99=99100u p90=91m p50=55m success=88 failure=12",
			"shop/web-1-a from/client p99=99100u p90=91m p50=55m success=101 failure=10",
			"shop/web-2-a from/client p99=99100u p90=91m p50=55m success=8 failure=2",
		}},
		{"one pod", request(observe.Pods, "web-2-a"), []string{"shop/web-2-a from/client p99=99100u p90=91m p50=55m success=8 failure=2"}},
		{"a pod without traffic has none", request(observe.Pods, "lonely"), []string{}},
		{"a selector chooses items and does not change them", observe.Request{Kind: observe.Pods, Namespace: "shop", Selector: labels.SelectorFromSet(labels.Set{"app": "web-2-a"})}, []string{
			"shop/web-2-a from/client p99=99100u p90=91m p50=55m success=8 failure=2",
		}},
		{"deployments are sums of their pods", request(observe.Deployments, ""), []string{
			"shop/load to/client p99=99100u p90=91m p50=55m success=88 failure=12",
			"shop/web from/client p99=99100u p90=91m p50=55m success=109 failure=12",
		}},
		{"Services have what was sent to them and what their pods received", request(observe.Services, ""), []string{
			"shop/db from/client success=5 failure=0",
			"shop/web from/client p99=99100u p90=91m p50=55m success=109 failure=12",
			"shop/web-canary from/client p99=99100u p90=91m p50=55m success=8 failure=2",
			"shop/web-stable from/client p99=99100u p90=91m p50=55m success=101 failure=10",
		}},
		{"namespaces; a latency of part of the requests is none", request(observe.Namespaces, ""), []string{
			"other to/client p99=99100u p90=91m p50=55m success=20 failure=0",
			"shop from/client success=114 failure=12",
		}},
		{"nodes", request(observe.Nodes, ""), []string{
			"n1 from/client p99=99100u p90=91m p50=55m success=101 failure=10",
			"n2 from/client success=13 failure=2",
		}},
		{"a split has an item for each backend", request(observe.TrafficSplits, ""), []string{
			"shop/web from/client [web→web-stable 90] p99=99100u p90=91m p50=55m success=101 failure=10",
			"shop/web from/client [web→web-canary 10] p99=99100u p90=91m p50=55m success=8 failure=2",
		}},
		{"a split that is not there has none", request(observe.TrafficSplits, "gone"), []string{}},
		{"jobs have no traffic", request(observe.Jobs, ""), []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, lines(Metrics(usual(), shop(), tt.r))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEdges(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    observe.Request
		want []string
	}{
		{"of a deployment: deployments, the workload of another kind, and what is outside", request(observe.Deployments, "web"), []string{
			"shop/web from/client p99=99100u p90=91m p50=55m success=1 failure=0",
			"shop/web from/client Deployment other/caller p99=99100u p90=91m p50=55m success=20 failure=0",
			"shop/web from/client Deployment shop/load p99=99100u p90=91m p50=55m success=88 failure=12",
			"shop/web to/client StatefulSet shop/db success=5 failure=0",
		}},
		{"of a pod: pods", request(observe.Pods, "load-a"), []string{
			"shop/load-a to/client Pod shop/web-1-a p99=99100u p90=91m p50=55m success=80 failure=10",
			"shop/load-a to/client Pod shop/web-2-a p99=99100u p90=91m p50=55m success=8 failure=2",
		}},
		{"of a namespace: what passes inside of it is from itself", request(observe.Namespaces, "shop"), []string{
			"shop from/client p99=99100u p90=91m p50=55m success=1 failure=0",
			"shop from/client Namespace /other p99=99100u p90=91m p50=55m success=20 failure=0",
			"shop from/client Namespace /shop success=93 failure=12",
		}},
		{"of a Service: the Service that was called", request(observe.Services, "web-stable"), []string{
			"shop/web-stable from/client p99=99100u p90=91m p50=55m success=1 failure=0",
			"shop/web-stable from/client Deployment other/caller p99=99100u p90=91m p50=55m success=20 failure=0",
			"shop/web-stable from/client Deployment shop/load p99=99100u p90=91m p50=55m success=80 failure=10",
			"shop/web-stable to/client Service shop/db success=5 failure=0",
		}},
		{"of a split: none", request(observe.TrafficSplits, "web"), []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, lines(Edges(usual(), shop(), tt.r))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatBothSidesSawIsCountedOnce(t *testing.T) {
	named := func(pod string) observe.Party { return observe.Party{Namespace: "shop", Pod: pod} }
	workload := func(name string) observe.Party {
		return observe.Party{Namespace: "shop", Workload: observe.Workload{Name: name}}
	}
	s := snapshot(
		// One request, seen by both, of which the client knows only the workload.
		observe.Flow{Side: metricsv1.SideClient, Client: named("load-a"), Server: workload("web"), Success: 10},
		observe.Flow{Side: metricsv1.SideServer, Client: workload("load"), Server: named("web-1-a"), Success: 9, Failure: 1},
		// The database has no proxy, so that only clients see it.
		observe.Flow{Side: metricsv1.SideClient, Client: named("web-1-a"), Server: workload("db"), Success: 3},
	)
	got := map[string][]string{}
	for _, kind := range []observe.Kind{observe.Pods, observe.Deployments, observe.StatefulSets, observe.Namespaces} {
		got[kind.Resource] = lines(Metrics(s, shop(), request(kind, "")))
	}
	got["edges of web"] = lines(Edges(s, shop(), request(observe.Deployments, "web")))
	got["edges of load"] = lines(Edges(s, shop(), request(observe.Deployments, "load")))
	want := map[string][]string{
		"pods": {"shop/load-a to/client success=10 failure=0", "shop/web-1-a from/server success=9 failure=1"},
		"deployments": {
			"shop/load to/client success=10 failure=0",
			"shop/web from/server success=9 failure=1",
		},
		"statefulsets":  {"shop/db from/client success=3 failure=0"},
		"namespaces":    {"shop from/server success=12 failure=1"},
		"edges of web":  {"shop/web from/server Deployment shop/load success=9 failure=1", "shop/web to/client StatefulSet shop/db success=3 failure=0"},
		"edges of load": {"shop/load to/client Deployment shop/web success=10 failure=0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSplits(t *testing.T) {
	service := func(name string) observe.Party { return observe.Party{Namespace: "shop", Service: name} }
	for _, tt := range []struct {
		name string
		s    observe.Snapshot
		want []string
	}{
		{"a backend that nothing was sent to had no requests", snapshot(split("10.0.0.3", "web-stable", "10.0.0.1", 7, 0)), []string{
			"shop/web from/client [web→web-stable 90] p99=99100u p90=91m p50=55m success=7 failure=0",
			"shop/web from/client [web→web-canary 10] success=0 failure=0",
		}},
		{"unless part of the traffic is not known", observe.Snapshot{Start: end0.Add(-time.Second), End: end0, Partial: "one proxy did not answer", Flows: []observe.Flow{split("10.0.0.3", "web-stable", "10.0.0.1", 7, 0)}}, []string{
			"shop/web from/client [web→web-stable 90] p99=99100u p90=91m p50=55m success=7 failure=0",
		}},
		{"a mesh that only knows the Service of the backend", snapshot(
			observe.Flow{Side: metricsv1.SideClient, Server: service("web-canary"), Success: 2},
			observe.Flow{Side: metricsv1.SideServer, Server: service("web-canary"), Success: 2},
			observe.Flow{Side: metricsv1.SideClient, Server: service("web-stable"), Failure: 3},
		), []string{
			"shop/web from/client [web→web-stable 90] success=0 failure=3",
			"shop/web from/client [web→web-canary 10] success=2 failure=0",
		}},
		{"a gateway that only knows the pods", snapshot(observe.Flow{Side: metricsv1.SideClient, Server: at("10.0.0.2"), Success: 2, Failure: 1}), []string{
			"shop/web from/client [web→web-stable 90] success=0 failure=0",
			"shop/web from/client [web→web-canary 10] success=2 failure=1",
		}},
		{"a mesh that counts only at the servers", snapshot(observe.Flow{Side: metricsv1.SideServer, Server: service("web-canary"), Success: 2}), []string{
			"shop/web from/server [web→web-stable 90] success=0 failure=0",
			"shop/web from/server [web→web-canary 10] success=2 failure=0",
		}},
		{"another split with the same backend is another", snapshot(observe.Flow{Side: metricsv1.SideClient, Server: service(""), Apex: "shop", Backend: "web-canary", Success: 2}), []string{}},
		{"what was not split, and what only one version is given, is not the split's", snapshot(observe.Flow{Side: metricsv1.SideClient, Server: service("web-stable"), Apex: "web-stable", Backend: "web-stable", Success: 9}), []string{}},
		{"no traffic", snapshot(), []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, lines(Metrics(tt.s, shop(), request(observe.TrafficSplits, "web")))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhoAnsweredForAServiceIsWhatAllOfItsPodsBelongTo(t *testing.T) {
	w := shop()
	w.pod(key("shop", "web-1-b"), "10.0.0.6", map[observe.Kind]string{observe.Deployments: "web", observe.ReplicaSets: "web-1", observe.Services: "web-stable", observe.Nodes: "n2"})
	w.pod(key("shop", "mixed-a"), "10.0.0.7", map[observe.Kind]string{observe.Deployments: "a", observe.Services: "mixed"})
	w.pod(key("shop", "mixed-b"), "10.0.0.8", map[observe.Kind]string{observe.Deployments: "b", observe.Services: "mixed"})
	w.pod(key("shop", "proxy"), "10.0.0.9", map[observe.Kind]string{observe.Deployments: "proxy", observe.Services: "web"})
	w.object(observe.Pods, key("shop", "proxy"), labels.Set{traffic.LabelProxy: "web"})
	to := func(apex, backend string, requests float64) observe.Flow {
		return observe.Flow{Side: metricsv1.SideClient, Client: at("10.0.0.3"), Server: observe.Party{Namespace: "shop", Service: backend}, Apex: apex, Backend: backend, Success: requests}
	}
	s := snapshot(to("web", "web-stable", 9), to("web", "web-canary", 2), to("", "mixed", 4), to("", "web", 3), to("", "gone", 1))
	got := map[string][]string{}
	for _, kind := range []observe.Kind{observe.Pods, observe.ReplicaSets, observe.Deployments, observe.Nodes, observe.Services, observe.TrafficSplits} {
		got[kind.Resource] = lines(Metrics(s, w, request(kind, "")))
	}
	got["edges of load"] = lines(Edges(s, w, request(observe.Deployments, "load")))
	want := map[string][]string{
		"pods":        {"shop/load-a to/client success=19 failure=0", "shop/web-2-a from/client success=2 failure=0"},
		"replicasets": {"shop/web-1 from/client success=9 failure=0", "shop/web-2 from/client success=2 failure=0"},
		"deployments": {"shop/load to/client success=19 failure=0", "shop/web from/client success=11 failure=0"},
		"nodes":       {"n1 to/client success=19 failure=0", "n2 from/client success=2 failure=0"},
		"services":    {"shop/mixed from/client success=4 failure=0", "shop/web from/client success=14 failure=0", "shop/web-canary from/client success=2 failure=0", "shop/web-stable from/client success=9 failure=0"},
		"trafficsplits": {
			"shop/web from/client [web→web-stable 90] success=9 failure=0",
			"shop/web from/client [web→web-canary 10] success=2 failure=0",
		},
		"edges of load": {
			"shop/load to/client Deployment shop/web success=11 failure=0",
			"shop/load to/client Service shop/gone success=1 failure=0",
			"shop/load to/client Service shop/mixed success=4 failure=0",
			"shop/load to/client Service shop/web success=3 failure=0",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNumbersThatAreNoneAreLeftOut(t *testing.T) {
	to := inShop("10.0.0.1")
	for _, tt := range []struct {
		name string
		flow observe.Flow
		want []string
	}{
		{"fractions", observe.Flow{Server: to, Success: 1.23456, Failure: 2}, []string{"shop/web-1-a from/client success=1235m failure=2"}},
		{"no number of requests", observe.Flow{Server: to, Success: math.NaN(), Failure: 2}, []string{}},
		{"infinitely many requests", observe.Flow{Server: to, Success: math.Inf(1)}, []string{}},
		{"less than no requests", observe.Flow{Server: to, Success: -1, Failure: 3}, []string{}},
		{"no requests at all", observe.Flow{Server: to}, []string{}},
		{"more than can be counted", observe.Flow{Server: to, Success: 1e300}, []string{"shop/web-1-a from/client success=9007199254740992 failure=0"}},
		{"a quantile beyond the last bound", observe.Flow{Server: to, Success: 10, Latency: histogram(5, 5, 9, 10)}, []string{"shop/web-1-a from/client p90=1 p50=10m success=10 failure=0"}},
		{"a histogram of nothing", observe.Flow{Server: to, Success: 10, Latency: histogram(0, 0, 0, 0)}, []string{"shop/web-1-a from/client success=10 failure=0"}},
		{"a histogram with NaN", observe.Flow{Server: to, Success: 10, Latency: histogram(0, math.NaN(), 0, 10)}, []string{"shop/web-1-a from/client success=10 failure=0"}},
		{"the server is unknown", observe.Flow{Server: at("192.0.2.1"), Success: 1}, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.flow.Side = metricsv1.SideClient
			if diff := cmp.Diff(tt.want, lines(Metrics(snapshot(tt.flow), shop(), request(observe.Pods, "")))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHistogramsWithOtherBoundsAreAddedAtTheCommonOnes(t *testing.T) {
	a := &observe.Histogram{LE: []float64{0.1, 0.2, 0.4}, Counts: []float64{1, 2, 3}, Total: 4}
	b := &observe.Histogram{LE: []float64{0.2, 0.3, 0.4}, Counts: []float64{10, 20, 30}, Total: 40}
	addHistogram(a, b)
	if diff := cmp.Diff(&observe.Histogram{LE: []float64{0.2, 0.4}, Counts: []float64{12, 33}, Total: 44}, a); diff != "" {
		t.Error(diff)
	}
	if v, known := quantile(a, 0.5); !known || math.Abs(v-(0.2+0.2*10/21)) > 1e-12 {
		t.Errorf("%v %v", v, known)
	}
}

func TestAnItemHasTheShapeOfTheSpecification(t *testing.T) {
	s := snapshot(split("10.0.0.3", "web-canary", "10.0.0.2", 100, 100))
	pods, err := yaml.Marshal(Edges(s, shop(), request(observe.Pods, "web-2-a"))[0])
	if err != nil {
		t.Fatal(err)
	}
	const want = `apiVersion: metrics.smi-spec.io/v1alpha1
edge:
  direction: from
  resource:
    apiVersion: v1
    kind: Pod
    name: load-a
    namespace: shop
  side: client
kind: TrafficMetrics
metadata:
  name: web-2-a
  namespace: shop
metrics:
- name: p99_response_latency
  unit: seconds
  value: 99100u
- name: p90_response_latency
  unit: seconds
  value: 91m
- name: p50_response_latency
  unit: seconds
  value: 55m
- name: success_count
  value: "100"
- name: failure_count
  value: "100"
resource:
  apiVersion: v1
  kind: Pod
  name: web-2-a
  namespace: shop
timestamp: "2026-03-01T12:00:00Z"
window: 30s
`
	if diff := cmp.Diff(want, string(pods)); diff != "" {
		t.Error(diff)
	}
	splits, err := yaml.Marshal(Metrics(s, shop(), request(observe.TrafficSplits, "web"))[1].Edge)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("direction: from\nresource: {}\nside: client\n", string(splits)); diff != "" {
		t.Error(diff)
	}
}
