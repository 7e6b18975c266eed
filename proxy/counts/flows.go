// SPDX-License-Identifier: Apache-2.0

package counts

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/proxy/accesslog"
)

const (
	// maxPairs bounds the pairs of a client and a backend that are distinct apart. One is
	// 19 series of Prometheus and 2.6 KB of an answer.
	maxPairs = 1000
	// pairAge is how long a pair is distinct without a request: longer than the readers
	// of the counts wait.
	pairAge = 10 * time.Minute
	// pairSweepInterval is how often it is looked for pairs that are older.
	pairSweepInterval = time.Minute
)

// flowBounds are the upper bounds of the latency histogram of a pair, in seconds. They
// are fewer than durationBounds, because pairs are many.
var flowBounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// flows counts users' requests by who sent them. Who can't be distinct apart any more is
// counted as the zero client of the same backend, so the sum is always that of all.
type flows struct {
	// Pairs by the kind of request, the backend Service and the client's address.
	Pairs map[string]map[string]map[netip.Addr]*pair `json:"pairs"`
	// Folded are requests of clients that are not distinct apart.
	Folded uint64 `json:"folded"`
	// swept is when it was looked for old pairs.
	swept time.Time
	// distinct is the number of pairs whose client is known.
	distinct int
}

// pair are the counts of the requests of one client to one backend.
type pair struct {
	Success uint64 `json:"success"`
	Failure uint64 `json:"failure"`
	// Buckets are requests by duration, as those of serviceCounts.
	Buckets [len(flowBounds) + 1]uint64 `json:"buckets"`
	// Millis is the sum of all durations.
	Millis uint64 `json:"millis"`
	// Last is when a request was counted, in seconds since 1970.
	Last int64 `json:"last"`
}

// add counts n requests to a Service, unless they have no client that waits for the answer,
// or their outcome says nothing of the version.
func (f *flows) add(service string, r accesslog.Record, n uint64, now time.Time) {
	kind := flowKind(r.Kind)
	if kind == "" {
		return
	}
	code, err := strconv.Atoi(r.Code)
	if err != nil {
		return // accesslog.Parse lets no such code pass
	}
	outcome := analysis.Classify(code)
	if outcome == analysis.Ignored {
		return
	}
	p := f.pair(kind, service, r.Client, n)
	p.Last = now.Unix()
	if outcome == analysis.Failure {
		p.Failure += n
	} else {
		p.Success += n
	}
	if r.Seconds >= 0 {
		i, _ := slices.BinarySearch(flowBounds[:], r.Seconds)
		p.Buckets[i] += n
		p.Millis += n * millis(r.Seconds)
	}
}

// pair finds the counts of a client, or those of all who are too many.
func (f *flows) pair(kind, service string, client netip.Addr, n uint64) *pair {
	clients := f.Pairs[kind][service]
	if p := clients[client]; p != nil {
		return p
	}
	if client.IsValid() && f.distinct >= maxPairs {
		f.Folded += n
		return f.pair(kind, service, netip.Addr{}, n)
	}
	if clients == nil {
		clients = map[netip.Addr]*pair{}
		if f.Pairs == nil {
			f.Pairs = map[string]map[string]map[netip.Addr]*pair{}
		}
		if f.Pairs[kind] == nil {
			f.Pairs[kind] = map[string]map[netip.Addr]*pair{}
		}
		f.Pairs[kind][service] = clients
	}
	if client.IsValid() {
		f.distinct++
	}
	p := &pair{}
	clients[client] = p
	return p
}

// sweep forgets the pairs that had no request for long, now and then.
func (f *flows) sweep(now time.Time) {
	if now.Sub(f.swept) < pairSweepInterval {
		return
	}
	f.swept, f.distinct = now, 0
	for _, services := range f.Pairs {
		for _, clients := range services {
			for client, p := range clients {
				switch {
				case now.Sub(time.Unix(p.Last, 0)) > pairAge:
					delete(clients, client)
				case client.IsValid():
					f.distinct++
				}
			}
		}
	}
}

// flowKind is the kind of pairs that a kind of request counts to; "" when it has no
// client, or none that waits for the answer.
func flowKind(kind string) string {
	switch kind {
	case accesslog.KindSplit, accesslog.KindSticky:
		return accesslog.KindSplit
	case accesslog.KindUnmatched:
		return accesslog.KindUnmatched
	default:
		return ""
	}
}
