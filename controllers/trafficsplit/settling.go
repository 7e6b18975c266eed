// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// settling remembers since when the routes of splits are as wanted, so that this is on
// record only once the weights are live. A restart that forgets it gives the proxies behind
// the routes their whole time again.
type settling struct {
	mu    sync.Mutex
	since map[types.NamespacedName]*splitv1.ConfirmedStatus
}

func (s *settling) at(split types.NamespacedName) *splitv1.ConfirmedStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since[split]
}

// note is told what the routes of a split are now; nil when they are not as wanted, or the
// split is gone.
func (s *settling) note(split types.NamespacedName, confirmed *splitv1.ConfirmedStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if confirmed == nil {
		delete(s.since, split)
		return
	}
	if s.since == nil {
		s.since = map[types.NamespacedName]*splitv1.ConfirmedStatus{}
	}
	s.since[split] = confirmed
}
