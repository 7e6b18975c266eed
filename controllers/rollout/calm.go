// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/controllers/kit/shell"
)

const (
	// calmFor is how long an object has to look the same before a write that names its
	// version: the Deployment controller writes the status of a Deployment many times
	// in a row, and each would make the write fail.
	calmFor = shell.ConflictPause
	// calmAtMost is how long is waited for that in all.
	calmAtMost = 2 * time.Second
)

// calms remembers what objects looked like that are waited for. It is only used to
// write a little later: a restart that forgets it changes nothing.
type calms struct {
	mu   sync.Mutex
	seen map[types.UID]sighting
}

// sighting is the version of an object, since when it has had it, and since when it
// has been waited for.
type sighting struct {
	version      string
	since, first time.Time
}

// calm reports whether an object has been the same for a while. When it has, it is
// not remembered any more.
func (c *calms) calm(uid types.UID, version string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.seen[uid]
	if known && (last.version == version && now.Sub(last.since) >= calmFor || now.Sub(last.first) >= calmAtMost) {
		delete(c.seen, uid)
		return true
	}
	if !known {
		last = sighting{first: now}
	}
	if last.version != version {
		last.version, last.since = version, now
	}
	if c.seen == nil {
		c.seen = map[types.UID]sighting{}
	}
	c.seen[uid] = last
	return false
}

// forget is told of objects that are not waited for any more.
func (c *calms) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, uid)
}
