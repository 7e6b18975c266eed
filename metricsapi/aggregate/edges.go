// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// edge is what items of one resource differ by.
type edge struct {
	direction metricsv1.Direction
	side      metricsv1.Side
	other     ref
}

// Edges returns an item for each other end that the resource r.Name exchanged requests
// with. The other end is of the kind of the resource where it has one. What passed
// inside of the resource is an edge from itself, and not another one to itself. A
// TrafficSplit has no edges.
func Edges(s observe.Snapshot, inventory observe.Inventory, r observe.Request) []metricsv1.TrafficMetrics {
	items := []metricsv1.TrafficMetrics{}
	if r.Kind == observe.TrafficSplits {
		return items
	}
	t := newResolved(s, inventory)
	of := ref{r.Kind, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
	for e, total := range t.edges(of) {
		items = append(items, item(of, metricsv1.Edge{Direction: e.direction, Side: e.side, Resource: e.other.object()}, total, &s))
	}
	order(items)
	return items
}

func (t *resolved) edges(of ref) map[edge]*sum {
	sums := map[edge]*sum{}
	add := func(f *flow, d metricsv1.Direction, other ref) {
		e := edge{d, f.Side, other}
		if sums[e] == nil {
			sums[e] = &sum{}
		}
		sums[e].add(f)
	}
	for i := range t.flows {
		f := &t.flows[i]
		serves := slices.Contains(t.in(&f.server, of.kind), of.name)
		sends := slices.Contains(t.in(&f.client, of.kind), of.name)
		switch {
		case serves && sends:
			if t.counts(f, metricsv1.DirectionFrom) {
				add(f, metricsv1.DirectionFrom, of)
			}
		case serves:
			if t.counts(f, metricsv1.DirectionFrom) {
				add(f, metricsv1.DirectionFrom, t.other(&f.client, of.kind))
			}
		case sends:
			if t.counts(f, metricsv1.DirectionTo) {
				add(f, metricsv1.DirectionTo, t.other(&f.server, of.kind))
			}
		}
	}
	return sums
}
