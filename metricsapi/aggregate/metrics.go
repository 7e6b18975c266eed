// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// Metrics returns an item for each resource that is asked for and had traffic: what it
// received from anywhere, or, when it received nothing, what it sent to anywhere. For a
// TrafficSplit they are one for each backend.
//
//	resource         direction  side
//	received         from       server, unless only clients (or proxies before the server) saw it
//	only sent        to         client, unless only servers saw it
//	TrafficSplit     from       client, unless only servers saw it
func Metrics(s observe.Snapshot, inventory observe.Inventory, r observe.Request) []metricsv1.TrafficMetrics {
	t := newResolved(s, inventory)
	items := []metricsv1.TrafficMetrics{}
	if r.Kind == observe.TrafficSplits {
		for _, name := range names(inventory, r) {
			items = append(items, t.split(name, &s)...)
		}
		order(items)
		return items
	}
	wanted := map[types.NamespacedName]bool{}
	for _, name := range names(inventory, r) {
		wanted[name] = true
	}
	received := t.totals(r.Kind, wanted, metricsv1.DirectionFrom)
	sent := t.totals(r.Kind, wanted, metricsv1.DirectionTo)
	for name, total := range received {
		items = append(items, item(ref{r.Kind, name}, anyone(metricsv1.DirectionFrom, total), total, &s))
		delete(sent, name)
	}
	for name, total := range sent {
		items = append(items, item(ref{r.Kind, name}, anyone(metricsv1.DirectionTo, total), total, &s))
	}
	order(items)
	return items
}

// anyone is the edge of a total.
func anyone(d metricsv1.Direction, s *sum) metricsv1.Edge {
	return metricsv1.Edge{Direction: d, Side: s.side(), Resource: ref{}.object()}
}

// names are the resources that are asked for.
func names(inventory observe.Inventory, r observe.Request) []types.NamespacedName {
	if r.Name == "" {
		return inventory.Names(r.Kind, r.Namespace, r.Selector)
	}
	return []types.NamespacedName{{Namespace: r.Namespace, Name: r.Name}}
}

// totals add up what some resources of a kind received or sent.
func (t *resolved) totals(kind observe.Kind, wanted map[types.NamespacedName]bool, d metricsv1.Direction) map[types.NamespacedName]*sum {
	totals := map[types.NamespacedName]*sum{}
	for i := range t.flows {
		f := &t.flows[i]
		if !t.counts(f, d) {
			continue
		}
		e := &f.server
		if d == metricsv1.DirectionTo {
			e = &f.client
		}
		for _, name := range t.in(e, kind) {
			if !wanted[name] {
				continue
			}
			if totals[name] == nil {
				totals[name] = &sum{}
			}
			totals[name].add(f)
		}
	}
	return totals
}

// split returns an item for each backend, once anything was sent to the split: a backend
// that nothing was sent to then had no requests, unless part of the traffic is not known.
func (t *resolved) split(name types.NamespacedName, s *observe.Snapshot) []metricsv1.TrafficMetrics {
	split, found := t.inventory.Split(name)
	if !found {
		return nil
	}
	sums, sent := t.backends(name.Namespace, split)
	if !sent {
		return nil
	}
	var side sum
	for _, total := range sums {
		side.server = side.server || total.server
	}
	var items []metricsv1.TrafficMetrics
	for i, b := range split.Backends {
		if sums[i].success+sums[i].failure == 0 && s.Partial != "" {
			continue
		}
		m := item(ref{observe.TrafficSplits, name}, anyone(metricsv1.DirectionFrom, &side), &sums[i], s)
		m.Backend = &metricsv1.Backend{Apex: split.Apex, Name: b.Name, Weight: b.Weight}
		items = append(items, m)
	}
	return items
}

// backends add up what was sent to each backend of a split, by clients if they counted.
func (t *resolved) backends(namespace string, split observe.Split) (sums []sum, sent bool) {
	byClients, byServers := make([]sum, len(split.Backends)), make([]sum, len(split.Backends))
	var clients bool
	for i := range t.flows {
		f := &t.flows[i]
		for j, b := range split.Backends {
			if f.server.namespace != namespace || !t.through(f, split.Apex, b.Name) {
				continue
			}
			sent = true
			if f.Side == metricsv1.SideClient {
				clients = true
				byClients[j].add(f)
			} else {
				byServers[j].add(f)
			}
		}
	}
	if clients {
		return byClients, sent
	}
	return byServers, sent
}

// through reports whether a flow took a backend of a split. Where the place of measurement
// does not say what was called, a request to the backend's Service, or to a pod of it, is
// taken for one.
func (t *resolved) through(f *flow, apex, backend string) bool {
	switch {
	case f.Apex != "":
		return f.Apex == apex && f.Backend == backend
	case f.Backend != "" || f.Server.Service != "":
		return cmp.Or(f.Backend, f.Server.Service) == backend
	default:
		return slices.Contains(t.inServices(&f.server), types.NamespacedName{Namespace: f.server.namespace, Name: backend})
	}
}
