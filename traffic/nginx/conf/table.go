// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"cmp"
	"slices"

	"github.com/serin-dev/serin/traffic"
)

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

// Buckets is the resolution of a split: a weight is served to the nearest
// 1/Buckets of all requests (0.01 %).
const Buckets = 10000

// Parts of the buckets are looked up before single buckets are. Most weights are multiples of a
// twentieth. With more parts fewer requests of other weights are in one that two backends
// share, but split_clients, which compares with one part after another, takes longer for all.
const Parts = 20

// maxDestinations of a port; far above what a TrafficSplit can hold, and far
// below Buckets so that every weight above 0 gets at least one.
const maxDestinations = 256

// shares divides the buckets among weights by largest remainder (the method of
// Hamilton), which is off by less than one bucket. A weight of 0 gets none, and
// one above 0 gets at least one: rounding neither starves a backend nor gives it
// traffic that no weight asks for. When all weights are 0, all shares are.
func shares(weights []int32) []int {
	out := make([]int, len(weights))
	var total int64
	for _, w := range weights {
		total += int64(max(w, 0))
	}
	if total == 0 {
		return out
	}
	left := Buckets
	order := make([]int, 0, len(weights)) // indexes of weights above 0
	remainder := make([]int64, len(weights))
	for i, w := range weights {
		if w <= 0 {
			continue
		}
		exact := int64(w) * Buckets // below 2^45
		out[i], remainder[i] = int(exact/total), exact%total
		if out[i] == 0 {
			out[i], remainder[i] = 1, 0
		}
		left -= out[i]
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainder[b], remainder[a]) })
	for i := 0; left > 0; i, left = i+1, left-1 {
		out[order[i%len(order)]]++
	}
	// Raising tiny weights to one bucket may have handed out too many: the largest
	// share misses them least.
	for ; left < 0; left++ {
		out[slices.Index(out, slices.Max(out))]--
	}
	return out
}
