// SPDX-License-Identifier: Apache-2.0

package debounce

import (
	"sync"
	"time"
)

// Left is how long a pause that began at a time lasts still; 0 when it is over or never
// began.
func Left(since time.Time, pause time.Duration, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return min(max(0, pause-now.Sub(since)), pause)
}

// Pause is how long to wait for something to come to rest.
type Pause struct {
	// Quiet is how long it has to look the same.
	Quiet time.Duration
	// Most is how long it is waited for in all; Quiet when zero.
	Most time.Duration
}

// Wait is what is remembered of something that is waited for. The zero Wait has not begun.
type Wait struct {
	version      string
	since, first time.Time
}

// Look notes what it looks like now and returns how long to wait still; 0 when it is at
// rest, or was waited for long enough.
func (w Wait) Look(version string, p Pause, now time.Time) (Wait, time.Duration) {
	if w.first.IsZero() {
		w.first = now
	}
	if w.since.IsZero() || w.version != version {
		w.version, w.since = version, now
	}
	return w, min(Left(w.since, p.Quiet, now), Left(w.first, max(p.Most, p.Quiet), now))
}

// Waits remembers what is waited for, by key. The zero Waits is ready.
type Waits[K comparable] struct {
	mu sync.Mutex
	of map[K]Wait
}

// Look is that of the Wait of a key. When it is over it is forgotten.
func (w *Waits[K]) Look(key K, version string, p Pause, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	next, left := w.of[key].Look(version, p, now)
	if left == 0 {
		delete(w.of, key)
		return 0
	}
	if w.of == nil {
		w.of = map[K]Wait{}
	}
	w.of[key] = next
	return left
}

// Forget is for what is not waited for any more.
func (w *Waits[K]) Forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, key)
}
