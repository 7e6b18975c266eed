// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// slow is far beyond any time that a server takes to say that it is there, on a machine that
// runs it and loses no packet: a lost packet of a new connection costs a second.
const slow = time.Second

// Series counts what is sent beside the main load.
type Series struct {
	// Begun counts the requests that were started. Settled counts from the first one up to the
	// first that has not ended: when it has come to what Begun was, none of before is under way.
	Begun   int64 `json:"begun"`
	Settled int64 `json:"settled"`
	// Requests that have ended, Connections that were opened for them.
	Requests    int64 `json:"requests"`
	Connections int64 `json:"connections"`
	// Slow counts the requests that took a second or more; Slowest is how long the slowest
	// took, in seconds.
	Slow    int64   `json:"slow"`
	Slowest float64 `json:"slowest"`
	// Kinds counts the requests that no version of the app answered.
	Kinds []KindReport `json:"kinds,omitempty"`
	// Failures are the latest of them, and the latest slow answers, which are of KindSlow.
	Failures []Failure `json:"failures,omitempty"`
	// Local is the client's address of the connection in use, where there is one.
	Local string `json:"local,omitempty"`
}

// series makes a Series. Its methods may be called at once.
type series struct {
	mu       sync.Mutex
	counts   Series
	underWay underWay
	kinds    map[Kind]int64
}

// begin counts a request and returns its number.
func (s *series) begin() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.underWay.begin()
}

// finish counts the outcome of the request with a number.
func (s *series) finish(now time.Time, number int64, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay.end(number)
	s.counts.Requests++
	s.counts.Connections += o.opened
	s.counts.Slowest = max(s.counts.Slowest, o.latency.Seconds())
	if o.latency >= slow {
		s.counts.Slow++
	}
	switch {
	case !o.kind.answered():
		if s.kinds == nil {
			s.kinds = map[Kind]int64{}
		}
		s.kinds[o.kind]++
		s.counts.Failures = appendBounded(s.counts.Failures, failureOf(now, o))
	case o.latency >= slow:
		o.kind = KindSlow
		s.counts.Failures = appendBounded(s.counts.Failures, failureOf(now, o))
	}
}

// use notes the client's address of the connection in use.
func (s *series) use(local string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Local = local
}

// get is a copy of what was counted so far.
func (s *series) get() Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	counts.Begun, counts.Settled = s.underWay.begun, s.underWay.settled()
	counts.Failures = slices.Clone(s.counts.Failures)
	for _, kind := range slices.Sorted(maps.Keys(s.kinds)) {
		counts.Kinds = append(counts.Kinds, KindReport{Kind: kind, Count: s.kinds[kind]})
	}
	return counts
}
