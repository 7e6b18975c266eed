// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"slices"
	"strings"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// OtherSplit is another split of the namespace.
type OtherSplit struct {
	// Split as read.
	Split *splitv1.TrafficSplit
	// Served is true when there may be a data plane that follows the split.
	Served bool
}

// Circle refuses a split that closes a cycle: its backend is
// the root Service of a second split, that one's of a third, and one of theirs is the
// root Service of the first.
//
// A chain that ends is fine: a split does not know of the next one, which is the
// "secondary proxy" of the specification. Of the splits that close a cycle the one
// that came last is refused, so that a new split changes the traffic of no other one:
//
//	a split                                                | counts for the others
//	-------------------------------------------------------+----------------------
//	has proxies, or may get them                           | with all it refers to
//	has none yet, and is older                             | with all it refers to
//	has none yet, and is younger                           | not at all
//	refers only to Services with live traffic, by status   | and is never refused
func Circle(split *splitv1.TrafficSplit, others []OtherSplit) []traffic.Problem {
	root, err := traffic.RootName(split)
	if err != nil {
		return nil // which Resolve refuses
	}
	live := liveServices(split)
	targets := references(split)
	if !slices.ContainsFunc(targets, func(t reference) bool { return !slices.Contains(live, t.service) }) {
		return nil
	}
	edges := edgesOf(split, others)
	for _, t := range targets {
		if t.service == root {
			continue // which Resolve refuses
		}
		if path := edges.path(t.service, root); path != nil {
			return []traffic.Problem{traffic.Refuse(splitv1.ReasonCircular,
				"%s: requests would loop, from Service %s; remove %q, or change the other split",
				t.field, path.String(root), t.service)}
		}
	}
	return nil
}

// liveServices are the Services that a split sends requests to by its status.
func liveServices(split *splitv1.TrafficSplit) []string {
	var services []string
	for _, b := range split.Status.Backends {
		services = append(services, b.Service)
	}
	if m := split.Status.Mirror; m != nil && len(services) > 0 {
		services = append(services, m.Service)
	}
	return services
}

// edge leads from a root Service to a Service that gets its requests.
type edge struct {
	to, split string
}

// graph has the edges from each root Service.
type graph map[string][]edge

func edgesOf(split *splitv1.TrafficSplit, others []OtherSplit) graph {
	edges := graph{}
	for _, n := range others {
		root, err := traffic.RootName(n.Split)
		if err != nil {
			continue
		}
		services := liveServices(n.Split)
		if n.Served || older(n.Split, split) {
			for _, r := range references(n.Split) {
				services = append(services, r.service)
			}
		}
		for _, to := range services {
			edges[root] = append(edges[root], edge{to: to, split: n.Split.Name})
		}
	}
	return edges
}

func older(a, b *splitv1.TrafficSplit) bool {
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c < 0
	}
	return a.Name < b.Name
}

// hops are a way through several splits.
type hops []edge

// String is the way from a Service.
func (h hops) String(from string) string {
	var way strings.Builder
	fmt.Fprintf(&way, "%q", from)
	for _, e := range h {
		by := ""
		if e.split != "" {
			by = fmt.Sprintf(" (TrafficSplit %q)", e.split)
		}
		fmt.Fprintf(&way, " to %q%s", e.to, by)
	}
	return way.String()
}

// path is the shortest way between two Services, beginning with the hop to from; nil
// when there is none.
func (g graph) path(from, to string) hops {
	seen := map[string]bool{from: true}
	ways := []hops{{edge{to: from}}}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, e := range g[way[len(way)-1].to] {
			next := append(slices.Clone(way), e)
			if e.to == to {
				return next
			}
			if !seen[e.to] {
				seen[e.to] = true
				ways = append(ways, next)
			}
		}
	}
	return nil
}
