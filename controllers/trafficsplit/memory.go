// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/controllers/kit/debounce"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

// memory is one value for each split, that a restart forgets.
type memory[V comparable] struct {
	mu     sync.Mutex
	values map[types.NamespacedName]V
}

func (m *memory[V]) of(split types.NamespacedName) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[split]
}

// note keeps a value; the zero value is forgotten. It reports whether it is another one.
func (m *memory[V]) note(split types.NamespacedName, v V) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	var none V
	before := m.values[split]
	switch {
	case v == none:
		delete(m.values, split)
	case m.values == nil:
		m.values = map[types.NamespacedName]V{split: v}
	default:
		m.values[split] = v
	}
	return before != v
}

// endpointAges remembers since when the backends of splits have had ready endpoints, as far as
// this process knows: EndpointSlices don't say. A restart that forgets it makes a backend's
// first requests come a moment later.
type endpointAges struct {
	mu    sync.Mutex
	since map[types.NamespacedName]map[string]time.Time
}

// fresh notes the backends of a split with their ready endpoints, and returns how long data
// planes still get to learn of each that has not had any for long enough.
func (s *endpointAges) fresh(split types.NamespacedName, ready map[string]int32, now time.Time) map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after, left := s.since[split], map[string]time.Time{}, map[string]time.Duration{}
	for service, n := range ready {
		if n == 0 {
			continue
		}
		since, known := before[service]
		if !known {
			since = now
		}
		after[service] = since
		if rest := debounce.Left(since, plan.EndpointTime, now); rest > 0 {
			left[service] = rest
		}
	}
	if s.since == nil {
		s.since = map[types.NamespacedName]map[string]time.Time{}
	}
	s.since[split] = after
	return left
}

// forget is told when a split is gone.
func (s *endpointAges) forget(split types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, split)
}
