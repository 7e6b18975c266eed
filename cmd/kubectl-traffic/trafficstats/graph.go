// SPDX-License-Identifier: Apache-2.0

package trafficstats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// Nodes of unknown clients.
const (
	UnknownClients = "(unknown clients)"
	UnknownServers = "(unknown servers)"
)

// Node is one end of traffic.
type Node struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ID is unique in a graph.
func (n Node) ID() string {
	return strings.Trim(strings.Join([]string{n.Kind, n.Namespace, n.Name}, "/"), "/")
}

func (n Node) compare(o Node) int {
	return cmp.Or(cmp.Compare(n.Kind, o.Kind), cmp.Compare(n.Namespace, o.Namespace), cmp.Compare(n.Name, o.Name))
}

// Edge is traffic from a client to a server.
type Edge struct {
	From, To Node
	Figures
}

// Graph is who calls whom.
type Graph struct {
	Nodes []Node
	Edges []Edge
}

// Build makes the graph of the edges of several resources. Traffic that both of its
// ends tell of is one edge, with the figures of the server. Resources without traffic
// are nodes without edges.
func Build(resources []Node, edges []metricsv1.TrafficMetrics) Graph {
	type ends struct{ from, to Node }
	found := map[ends]Edge{}
	seen := map[ends]bool{} // with figures of the server
	nodes := map[Node]bool{}
	for _, n := range resources {
		nodes[n] = true
	}
	for i := range edges {
		m := &edges[i]
		from, to := clientAndServer(m)
		k := ends{from, to}
		nodes[from], nodes[to] = true, true
		server := m.Edge.Side == metricsv1.SideServer
		if _, known := found[k]; !known || server && !seen[k] {
			found[k] = Edge{From: from, To: to, Figures: Read(m)}
		}
		seen[k] = seen[k] || server
	}
	var g Graph
	for n := range nodes {
		g.Nodes = append(g.Nodes, n)
	}
	for _, e := range found {
		g.Edges = append(g.Edges, e)
	}
	slices.SortFunc(g.Nodes, Node.compare)
	slices.SortFunc(g.Edges, func(a, b Edge) int { return cmp.Or(a.From.compare(b.From), a.To.compare(b.To)) })
	return g
}

// clientAndServer are the ends of an item.
func clientAndServer(m *metricsv1.TrafficMetrics) (client, server Node) {
	self, far := NodeOf(m.Resource), NodeOf(other(m))
	if m.Edge.Direction == metricsv1.DirectionTo {
		return self, orUnknown(far, UnknownServers)
	}
	return orUnknown(far, UnknownClients), self
}

// NodeOf is the node of a reference.
func NodeOf(r corev1.ObjectReference) Node {
	return Node{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Nodes are the resources of a list, each once.
func Nodes(list *metricsv1.TrafficMetricsList) []Node {
	var nodes []Node
	seen := map[Node]bool{}
	for i := range list.Items {
		if n := NodeOf(list.Items[i].Resource); n.Name != "" && !seen[n] {
			seen[n] = true
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// orUnknown names an end by what is known of it: only a kind or a namespace, or nothing.
func orUnknown(n Node, unknown string) Node {
	if n.Name == "" {
		n.Name = unknown
	}
	return n
}

// Labels are the names to show: without the namespace where there is only one.
func (g Graph) Labels() map[Node]string {
	namespaces, kinds := map[string]bool{}, map[string]bool{}
	for _, n := range g.Nodes {
		if n.Name != UnknownClients && n.Name != UnknownServers {
			namespaces[n.Namespace], kinds[n.Kind] = true, true
		}
	}
	labels := map[Node]string{}
	for _, n := range g.Nodes {
		label := n.Name
		if len(namespaces) > 1 && n.Namespace != "" {
			label = n.Namespace + "/" + label
		}
		if len(kinds) > 1 && n.Kind != "" {
			label = strings.ToLower(n.Kind) + "/" + label
		}
		labels[n] = label
	}
	return labels
}

// DOT is the graph in the language of graphviz.
func (g Graph) DOT() string {
	var b strings.Builder
	labels := g.Labels()
	b.WriteString("digraph traffic {\n  rankdir=LR;\n  node [shape=box];\n")
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "  %s [label=%s];\n", quote(n.ID()), quote(labels[n]))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s -> %s [label=%s];\n", quote(e.From.ID()), quote(e.To.ID()), quote(strings.Join(e.Cells(), " ")))
	}
	b.WriteString("}\n")
	return b.String()
}

// quote makes an ID of DOT of any text. A backslash begins an escape in labels.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\x00", "").Replace(text) + `"`
}
