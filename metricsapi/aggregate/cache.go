// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"sync"
	"time"

	"github.com/serin-dev/serin/metricsapi/observe"
)

// entry is what is kept of one observation.
type entry struct {
	snapshot observe.Snapshot
	err      error
	until    time.Time
}

// cache keeps the last observation of a bounded number of scopes.
type cache struct {
	most    int
	mu      sync.Mutex
	entries map[string]entry
}

func newCache(most int) *cache { return &cache{most: most, entries: map[string]entry{}} }

// get returns what is kept of a scope, and whether it may still be used.
func (c *cache) get(scope string, now time.Time) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, found := c.entries[scope]
	return e, found && now.Before(e.until)
}

// put keeps an observation; for a scope that finds no room, the one goes that ends first.
func (c *cache) put(scope string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[scope] = e
	for len(c.entries) > c.most {
		delete(c.entries, c.oldest(scope))
	}
}

// oldest is the entry that ends first beside the one that was just put.
func (c *cache) oldest(but string) (scope string) {
	var until time.Time
	for name, e := range c.entries {
		if name != but && (until.IsZero() || e.until.Before(until)) {
			scope, until = name, e.until
		}
	}
	return scope
}
