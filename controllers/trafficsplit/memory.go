// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
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
