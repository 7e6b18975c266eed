// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

const pods = 12

// town has pods of a few deployments in two namespaces.
func town() *world {
	w := newWorld()
	for i := range pods {
		w.pod(key(fmt.Sprintf("ns-%d", i%2), fmt.Sprintf("pod-%d", i)), fmt.Sprintf("10.0.0.%d", i), map[observe.Kind]string{
			observe.Deployments: fmt.Sprintf("d-%d", i%4), observe.ReplicaSets: fmt.Sprintf("d-%d-rs", i%4), observe.Nodes: fmt.Sprintf("node-%d", i%3),
		})
	}
	return w
}

// random is what a mesh that has some deployments counted.
func random(r *rand.Rand) observe.Snapshot {
	party := func() (observe.Party, int) {
		i := r.IntN(pods + 2)
		if i >= pods {
			return at(fmt.Sprintf("192.0.2.%d", i)), i
		}
		if r.IntN(2) == 0 {
			return at(fmt.Sprintf("10.0.0.%d", i)), i
		}
		return observe.Party{Namespace: fmt.Sprintf("ns-%d", i%2), Pod: fmt.Sprintf("pod-%d", i)}, i
	}
	meshed := r.IntN(16)
	inMesh := func(i int) bool { return i < pods && meshed>>(i%4)&1 == 1 }
	var flows []observe.Flow
	for range r.IntN(40) {
		client, c := party()
		server, s := party()
		f := observe.Flow{Client: client, Server: server, Success: float64(r.IntN(100)), Failure: float64(r.IntN(10))}
		n := f.Success + f.Failure
		f.Latency = histogram(n/4, n/2, n, n)
		if inMesh(c) {
			f.Side = metricsv1.SideClient
			flows = append(flows, f)
		}
		if inMesh(s) {
			f.Side = metricsv1.SideServer
			flows = append(flows, f)
		}
	}
	return snapshot(flows...)
}

// requests adds up the requests of items by namespace.
func requests(items []metricsv1.TrafficMetrics, namespace func(metricsv1.TrafficMetrics) string) map[string]int64 {
	sums := map[string]int64{}
	for _, m := range items {
		for _, v := range m.Metrics {
			if v.Unit == "" {
				sums[namespace(m)+" "+string(m.Edge.Direction)] += v.Value.Value()
			}
		}
	}
	return sums
}

func TestNoRequestIsLostOrCountedTwice(t *testing.T) {
	w := town()
	for seed := range uint64(300) {
		s := random(rand.New(rand.NewPCG(seed, 1)))
		traffic := newResolved(s, w)
		of := func(kind observe.Kind, d metricsv1.Direction) map[string]float64 {
			sums := map[string]float64{}
			wanted := map[types.NamespacedName]bool{}
			for _, name := range w.Names(kind, "", labels.Everything()) {
				wanted[name] = true
			}
			for name, total := range traffic.totals(kind, wanted, d) {
				namespace := name.Namespace
				if !kind.Namespaced {
					namespace = name.Name
				}
				sums[namespace] += total.success + total.failure
			}
			return sums
		}
		for _, d := range []metricsv1.Direction{metricsv1.DirectionFrom, metricsv1.DirectionTo} {
			want := fmt.Sprint(of(observe.Namespaces, d))
			for _, kind := range []observe.Kind{observe.Pods, observe.Deployments, observe.ReplicaSets} {
				if got := fmt.Sprint(of(kind, d)); got != want {
					t.Fatalf("seed %d: %s %s are %s, and namespaces %s", seed, d, kind.Resource, got, want)
				}
			}
		}
		edgesMakeTheTotal(t, seed, s, w)
	}
}

func edgesMakeTheTotal(t *testing.T, seed uint64, s observe.Snapshot, w *world) {
	t.Helper()
	for _, kind := range []observe.Kind{observe.Pods, observe.Deployments, observe.Namespaces, observe.Nodes} {
		for _, name := range w.Names(kind, "", labels.Everything()) {
			r := observe.Request{Kind: kind, Namespace: name.Namespace, Name: name.Name, Selector: labels.Everything()}
			only := func(metricsv1.TrafficMetrics) string { return "" }
			total, edges := requests(Metrics(s, w, r), only), requests(Edges(s, w, r), only)
			for direction, n := range total {
				if edges[direction] != n {
					t.Fatalf("seed %d: the edges of %s %v have %v, and the total is %v", seed, kind.Resource, name, edges, total)
				}
			}
		}
	}
}
