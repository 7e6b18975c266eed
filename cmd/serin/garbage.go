// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// startGC is the percentage of garbage that is kept while the operator starts. What is kept of
	// what is read lies among garbage, whose room can't be returned: the less there is at a time,
	// the less is lost.
	startGC = 20
	// leastGarbage is how much is kept at least, in bytes. A share of little is made again in no
	// time, and most of the processor's time would go into collecting it.
	leastGarbage = 16 << 20
	// leastHeap is what the Go runtime takes for in use at least (heapminimum of its mgc.go).
	leastHeap = 4 << 20
)

// garbage is how much garbage is kept until it is collected. It is decided after each collection
// for the next, by how much that found in use.
type garbage struct {
	usual int // percentage

	mu       sync.Mutex
	starting bool
	share    int // percentage that was decided last
}

// keepGarbage decides from now on. The operator is starting.
func keepGarbage(usual int) *garbage {
	g := &garbage{usual: usual, starting: true}
	g.decide()
	g.decideAgain()
	return g
}

// starts and started say whether the operator is starting.
func (g *garbage) starts()  { g.start(true) }
func (g *garbage) started() { g.start(false) }

func (g *garbage) start(starting bool) {
	g.mu.Lock()
	g.starting = starting
	g.mu.Unlock()
	g.decide()
}

// decideAgain decides after each collection: it finds an object that nothing refers to.
func (g *garbage) decideAgain() {
	runtime.AddCleanup(&struct{ next *garbage }{g}, func(g *garbage) {
		g.decide()
		g.decideAgain()
	}, g)
}

func (g *garbage) decide() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if share := garbageShare(inUse(), g.usual, g.starting); share != g.share {
		g.share = share
		debug.SetGCPercent(share) // which stops the world
	}
}

// garbageShare is the percentage of garbage to what is in use, in bytes. One below 0 collects
// nothing before the limit of memory is reached.
func garbageShare(used uint64, usual int, starting bool) int {
	switch {
	case usual < 0:
		return usual
	case starting:
		usual = min(startGC, usual)
	}
	return max(usual, int(leastGarbage*100/max(used, leastHeap))) //nolint:gosec // it is a small number
}

// inUse is what the last collection found in use, in bytes.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
