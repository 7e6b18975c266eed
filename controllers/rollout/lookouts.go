// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/controllers/release/state"
)

// lookouts remembers when each Rollout was looked at, so that the planner learns when the
// operator could not look. A restart that forgets it has read everything anew.
type lookouts struct {
	mu sync.Mutex
	of map[types.NamespacedName]state.Lookout
}

// look notes a look and returns the last jump.
func (l *lookouts) look(rollout types.NamespacedName, now time.Time) state.Jump {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[types.NamespacedName]state.Lookout{}
	}
	l.of[rollout] = l.of[rollout].Look(now)
	return l.of[rollout].Jump
}

// lookAgain notes how long after its last look a Rollout is to be looked at again.
func (l *lookouts) lookAgain(rollout types.NamespacedName, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[rollout] = l.of[rollout].LookAgain(after)
}

// forget is told of Rollouts that are gone.
func (l *lookouts) forget(rollout types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, rollout)
}
