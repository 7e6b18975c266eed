// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy says that others come first.
var ErrBusy = errors.New("others come first")

// ErrRecalled is the cause why the context of a task ended that kept its slot for too long
// while a namespace without one waited.
var ErrRecalled = errors.New("others wait for too long")

// Slots are those of a Queue, for several goroutines.
type Slots struct {
	keep  time.Duration
	mu    sync.Mutex
	queue *Queue[*task]
	// places are the tasks of Claim without a slot, or with one that was not fetched yet.
	places map[string]*task
}

// task is told once that it has a slot, and may be told to stop, both under the lock.
type task struct{ start, stop func() }

// claimWithin is for how long a slot is kept for the key whose turn has come: longer than two
// reconciles may take, since one may be under way.
const claimWithin = 3 * time.Minute

// NewSlots makes slots that are all free.
func NewSlots(limits Limits) *Slots {
	return &Slots{keep: limits.Keep, queue: NewQueue[*task](limits), places: map[string]*task{}}
}

// begin is the context of a task that has a slot, and what ends it. The lock is held.
func (s *Slots) begin(ctx context.Context, t *task) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	t.stop = func() { cancel(ErrRecalled) }
	end := sync.OnceFunc(func() { s.leave(t); cancel(nil) })
	if s.keep == 0 {
		return held, end
	}
	timer := time.AfterFunc(s.keep, func() { s.overstay(t) })
	return held, func() { timer.Stop(); end() }
}

// Claim takes a slot without a wait. It returns the context of the task, which may end by
// ErrRecalled, and what frees the slot again. ErrBusy says that the turn of the key has not come,
// and the key keeps its place. When its turn comes, ready is called, which must not block, and the
// slot is kept for the next Claim. A slot that is not claimed within claimWithin goes to the next
// place, and the place of the key is lost.
func (s *Slots) Claim(ctx context.Context, namespace, key string, ready func()) (held context.Context, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.places[key]
	if t == nil {
		t = &task{start: func() {}}
		s.places[key] = t
		s.queue.Join(namespace, t)
		s.wake()
	}
	if _, given := s.queue.holds[t]; !given {
		t.start = func() {
			time.AfterFunc(claimWithin, func() { s.lapse(key, t) })
			ready()
		}
		return nil, nil, ErrBusy
	}
	delete(s.places, key)
	held, release = s.begin(ctx, t)
	return held, release, nil
}

// Drop gives up the place of a key, if it has one.
func (s *Slots) Drop(key string) {
	s.mu.Lock()
	t := s.places[key]
	s.mu.Unlock()
	s.lapse(key, t)
}

// lapse gives up a place that was not claimed.
func (s *Slots) lapse(key string, t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t == nil || s.places[key] != t {
		return
	}
	delete(s.places, key)
	s.queue.Leave(t)
	s.wake()
}

// Go does something in a goroutine of its own once it has a slot, and frees the slot after it.
// What waits has no goroutine, and any number may.
func (s *Slots) Go(namespace string, do func()) {
	t := &task{}
	t.start = func() {
		go func() {
			defer s.leave(t)
			do()
		}()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.Join(namespace, t)
	s.wake()
}

// Loads are those of the namespaces that have a task.
func (s *Slots) Loads() map[string]Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Loads()
}

func (s *Slots) leave(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.Leave(t)
	s.wake()
}

func (s *Slots) overstay(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.Overstay(t)
	s.wake()
}

// wake starts the tasks that have a slot now, and stops those that have to leave.
func (s *Slots) wake() {
	for t, given := s.queue.Next(); given; t, given = s.queue.Next() {
		t.start()
	}
	for t, given := s.queue.Recall(); given; t, given = s.queue.Recall() {
		t.stop()
	}
}
