// SPDX-License-Identifier: Apache-2.0

package trafficstats

import "time"

// Topology is a graph for programs. What was not measured is absent.
type Topology struct {
	Nodes []Node         `json:"nodes"`
	Edges []TopologyEdge `json:"edges"`
}

// TopologyEdge is traffic from a client to a server.
type TopologyEdge struct {
	From Node `json:"from"`
	To   Node `json:"to"`
	// SuccessRate is from 0 to 1.
	SuccessRate *float64 `json:"successRate,omitempty"`
	// RequestsPerSecond of the window.
	RequestsPerSecond *float64 `json:"requestsPerSecond,omitempty"`
	// Latencies in seconds.
	P50 *float64 `json:"p50Seconds,omitempty"`
	P90 *float64 `json:"p90Seconds,omitempty"`
	P99 *float64 `json:"p99Seconds,omitempty"`
}

// Topology is the graph for programs.
func (g Graph) Topology() Topology {
	t := Topology{Nodes: append([]Node{}, g.Nodes...), Edges: []TopologyEdge{}}
	for _, e := range g.Edges {
		t.Edges = append(t.Edges, TopologyEdge{
			From: e.From, To: e.To, SuccessRate: known(e.SuccessRate()), RequestsPerSecond: known(e.RPS()),
			P50: seconds(e.P50), P90: seconds(e.P90), P99: seconds(e.P99),
		})
	}
	return t
}

func known(value float64, is bool) *float64 {
	if !is {
		return nil
	}
	return &value
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}
