// SPDX-License-Identifier: Apache-2.0

package nginx

import "github.com/serin-dev/serin/traffic"

// Table is the weights of every HTTP listener. It is not part of the
// configuration, so that a change of weights needs no reload: a reload closes
// idle client connections, and a request that is on its way on one of them is
// lost.
type Table []ListenerTable

// ListenerTable shares the buckets of one listener among its backends.
type ListenerTable struct {
	// Listener is its index, the beginning of the names of its folders in the table.
	Listener int
	// Ranges are in bucket order, one for each destination. They cover all buckets, or
	// none when no backend has weight.
	Ranges []Range
}

// Range gives consecutive buckets to one backend.
type Range struct {
	// Target is the backend's ID.
	Target string
	// Buckets is how many of them.
	Buckets int
}

// makeTable shares the buckets of every HTTP listener.
func makeTable(listeners []Listener) Table {
	var table Table
	for i, l := range listeners {
		if l.Port.Protocol.HasRequests() {
			table = append(table, ListenerTable{Listener: i, Ranges: makeRanges(l.Port)})
		}
	}
	return table
}

// makeRanges shares the buckets of one port.
func makeRanges(port traffic.Port) []Range {
	var ranges []Range
	for i, n := range portShares(port) {
		ranges = append(ranges, Range{Target: BackendID(port.Destinations[i]), Buckets: n})
	}
	return ranges
}

// portShares is the number of buckets of each destination of a port.
func portShares(port traffic.Port) []int {
	weights := make([]int32, len(port.Destinations))
	for i, d := range port.Destinations {
		weights[i] = d.Weight
	}
	return shares(weights)
}
