// SPDX-License-Identifier: Apache-2.0

package trafficstats

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// Row is what is shown of one item.
type Row struct {
	Namespace, Name string
	Direction       metricsv1.Direction
	// Other is the other end of an edge; zero for all of them.
	Other corev1.ObjectReference
	// Backend of a TrafficSplit; nil for other resources.
	Backend *metricsv1.Backend
	Figures
}

// Received are the items of what resources receive, and of those that only send, what
// they send.
func Received(items []metricsv1.TrafficMetrics) []metricsv1.TrafficMetrics {
	receives := map[Node]bool{}
	for i := range items {
		if items[i].Edge.Direction == metricsv1.DirectionFrom {
			receives[NodeOf(items[i].Resource)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(items), func(m metricsv1.TrafficMetrics) bool {
		return m.Edge.Direction != metricsv1.DirectionFrom && receives[NodeOf(m.Resource)]
	})
}

// Rows are the items in one direction, or in both when it is "". Where the same traffic
// was observed at both sides, the row is that of the side of the resource itself.
func Rows(items []metricsv1.TrafficMetrics, direction metricsv1.Direction) []Row {
	type key struct {
		namespace, name, backend string
		direction                metricsv1.Direction
		other                    corev1.ObjectReference
	}
	at := map[key]int{}
	var rows []Row
	for i := range items {
		m := &items[i]
		if direction != "" && m.Edge.Direction != direction {
			continue
		}
		row := Row{
			Namespace: m.Resource.Namespace, Name: m.Resource.Name, Direction: m.Edge.Direction,
			Other: other(m), Backend: m.Backend, Figures: Read(m),
		}
		k := key{row.Namespace, row.Name, backendName(m), row.Direction, row.Other}
		known, found := at[k]
		switch {
		case !found:
			at[k] = len(rows)
			rows = append(rows, row)
		case ownSide(m):
			rows[known] = row
		}
	}
	return rows
}

func other(m *metricsv1.TrafficMetrics) corev1.ObjectReference {
	if m.Edge.Resource == nil {
		return corev1.ObjectReference{}
	}
	r := *m.Edge.Resource
	return corev1.ObjectReference{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

func backendName(m *metricsv1.TrafficMetrics) string {
	if m.Backend == nil {
		return ""
	}
	return m.Backend.Name
}

// ownSide is whether traffic was observed at the resource itself.
func ownSide(m *metricsv1.TrafficMetrics) bool {
	return (m.Edge.Direction == metricsv1.DirectionFrom) == (m.Edge.Side == metricsv1.SideServer)
}

// SortKeys are what rows can be sorted by.
var SortKeys = []string{"name", "success", "rps", "latency", "failures"}

// Sort sorts rows: by name, or with what needs attention first, which is the lowest
// success rate, the most requests, the highest latency or the most failures. What is
// not known comes last.
func Sort(rows []Row, by string) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(compareBy(a, b, by), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			strings.Compare(string(a.Direction), string(b.Direction)), strings.Compare(a.backend(), b.backend()),
			cmp.Compare(a.Other.Namespace, b.Other.Namespace), cmp.Compare(a.Other.Name, b.Other.Name))
	})
}

func (r Row) backend() string {
	if r.Backend == nil {
		return ""
	}
	return r.Backend.Name
}

func compareBy(a, b Row, by string) int {
	value := func(r Row) (v float64, known bool) {
		switch by {
		case "success":
			v, known = r.SuccessRate()
		case "rps":
			v, known = r.RPS()
			v = -v
		case "latency":
			if known = r.P99 != nil; known {
				v = -r.P99.Seconds()
			}
		case "failures":
			if known = r.Failure != nil; known {
				v = -*r.Failure
			}
		}
		return v, known
	}
	x, xKnown := value(a)
	y, yKnown := value(b)
	if xKnown != yKnown {
		if xKnown {
			return -1
		}
		return 1
	}
	return cmp.Compare(x, y)
}
