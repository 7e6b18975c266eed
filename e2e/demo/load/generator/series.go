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

// Counter makes a Series. Its methods may be called at once.
type Counter struct {
	mu       sync.Mutex
	counts   Series
	underWay underWay
	kinds    map[Kind]int64
}

// begin counts a request and returns its number.
func (c *Counter) begin() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.underWay.begin()
}

// Count counts a request that has ended, and took so long.
func (c *Counter) Count(now time.Time, kind Kind, took time.Duration, detail string) {
	c.finish(now, c.begin(), outcome{kind: kind, latency: took, detail: detail})
}

// finish counts the outcome of the request with a number.
func (c *Counter) finish(now time.Time, number int64, o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underWay.end(number)
	c.counts.Requests++
	c.counts.Connections += o.opened
	c.counts.Slowest = max(c.counts.Slowest, o.latency.Seconds())
	if o.latency >= slow {
		c.counts.Slow++
	}
	switch {
	case !o.kind.answered():
		if c.kinds == nil {
			c.kinds = map[Kind]int64{}
		}
		c.kinds[o.kind]++
		c.counts.Failures = appendBounded(c.counts.Failures, failureOf(now, o))
	case o.latency >= slow:
		o.kind = KindSlow
		c.counts.Failures = appendBounded(c.counts.Failures, failureOf(now, o))
	}
}

// use notes the client's address of the connection in use.
func (c *Counter) use(local string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Local = local
}

// Series is a copy of what was counted so far.
func (c *Counter) Series() Series {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	counts.Begun, counts.Settled = c.underWay.begun, c.underWay.settled()
	counts.Failures = slices.Clone(c.counts.Failures)
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		counts.Kinds = append(counts.Kinds, KindReport{Kind: kind, Count: c.kinds[kind]})
	}
	return counts
}
