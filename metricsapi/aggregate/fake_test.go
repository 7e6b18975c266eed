// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// world is an inventory that a test writes.
type world struct {
	holders map[types.NamespacedName]map[observe.Kind][]types.NamespacedName
	pods    map[netip.Addr]types.NamespacedName
	objects map[observe.Kind]map[types.NamespacedName]labels.Set
	splits  map[types.NamespacedName]observe.Split
}

func newWorld() *world {
	return &world{
		holders: map[types.NamespacedName]map[observe.Kind][]types.NamespacedName{}, pods: map[netip.Addr]types.NamespacedName{},
		objects: map[observe.Kind]map[types.NamespacedName]labels.Set{}, splits: map[types.NamespacedName]observe.Split{},
	}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (w *world) object(kind observe.Kind, name types.NamespacedName, l labels.Set) {
	if w.objects[kind] == nil {
		w.objects[kind] = map[types.NamespacedName]labels.Set{}
	}
	w.objects[kind][name] = l
}

// pod adds a pod, what holds it, and its namespace.
func (w *world) pod(name types.NamespacedName, address string, holders map[observe.Kind]string) {
	w.object(observe.Pods, name, labels.Set{"app": name.Name})
	w.object(observe.Namespaces, key("", name.Namespace), nil)
	w.pods[netip.MustParseAddr(address)] = name
	w.holders[name] = map[observe.Kind][]types.NamespacedName{}
	for kind, holder := range holders {
		held := key(name.Namespace, holder)
		if !kind.Namespaced {
			held.Namespace = ""
		}
		w.object(kind, held, nil)
		w.holders[name][kind] = append(w.holders[name][kind], held)
	}
}

func (w *world) Names(kind observe.Kind, namespace string, selector labels.Selector) []types.NamespacedName {
	var names []types.NamespacedName
	for name, l := range w.objects[kind] {
		if (namespace == "" || namespace == name.Namespace) && selector.Matches(l) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return names
}

func (w *world) Exists(kind observe.Kind, name types.NamespacedName) bool {
	_, found := w.objects[kind][name]
	return found
}

func (w *world) Pod(address netip.Addr) (types.NamespacedName, bool) {
	name, found := w.pods[address]
	return name, found
}

func (w *world) Holders(kind observe.Kind, pod types.NamespacedName) []types.NamespacedName {
	return w.holders[pod][kind]
}

func (w *world) Split(name types.NamespacedName) (observe.Split, bool) {
	s, found := w.splits[name]
	return s, found
}

// shop is a namespace with two versions of web behind one split, a generator that only
// sends, a database of a StatefulSet and a pod without an owner.
func shop() *world {
	w := newWorld()
	w.pod(key("shop", "web-1-a"), "10.0.0.1", map[observe.Kind]string{observe.Deployments: "web", observe.ReplicaSets: "web-1", observe.Services: "web-stable", observe.Nodes: "n1"})
	w.pod(key("shop", "web-2-a"), "10.0.0.2", map[observe.Kind]string{observe.Deployments: "web", observe.ReplicaSets: "web-2", observe.Services: "web-canary", observe.Nodes: "n2"})
	w.pod(key("shop", "load-a"), "10.0.0.3", map[observe.Kind]string{observe.Deployments: "load", observe.Nodes: "n1"})
	w.pod(key("shop", "db-0"), "10.0.0.4", map[observe.Kind]string{observe.StatefulSets: "db", observe.Services: "db", observe.Nodes: "n2"})
	w.pod(key("shop", "lonely"), "10.0.0.5", nil)
	w.pod(key("other", "caller"), "10.0.1.1", map[observe.Kind]string{observe.Deployments: "caller"})
	w.object(observe.Services, key("shop", "web"), labels.Set{"app": "web"})
	w.object(observe.TrafficSplits, key("shop", "web"), nil)
	w.splits[key("shop", "web")] = observe.Split{Apex: "web", Backends: []metricsv1.Backend{
		{Apex: "web", Name: "web-stable", Weight: 90}, {Apex: "web", Name: "web-canary", Weight: 10},
	}}
	return w
}

func at(address string) observe.Party { return observe.Party{Address: netip.MustParseAddr(address)} }

func inShop(address string) observe.Party {
	return observe.Party{Namespace: "shop", Address: netip.MustParseAddr(address)}
}

func histogram(counts ...float64) *observe.Histogram {
	return &observe.Histogram{LE: []float64{0.01, 0.1, 1}, Counts: counts[:3], Total: counts[3]}
}

// split is what a proxy of the split counted.
func split(client, backend, server string, success, failure float64) observe.Flow {
	f := observe.Flow{Side: metricsv1.SideClient, Client: at(client), Server: inShop(server), Apex: "web", Backend: backend, Success: success, Failure: failure}
	f.Latency = histogram(0, success+failure, success+failure, success+failure)
	return f
}

var end0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func snapshot(flows ...observe.Flow) observe.Snapshot {
	return observe.Snapshot{Start: end0.Add(-30 * time.Second), End: end0, Flows: flows}
}
