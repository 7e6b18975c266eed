// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"sync"
)

// ErrBusy says that others come first: there is no slot, or too many tasks of the namespace
// wait for one already.
var ErrBusy = errors.New("others come first")

// Slots are those of a Queue, for several goroutines.
type Slots struct {
	mu    sync.Mutex
	queue *Queue[*task]
}

// task is told once that it has a slot, under the lock.
type task struct{ start func() }

// NewSlots makes slots that are all free.
func NewSlots(limits Limits) *Slots {
	return &Slots{queue: NewQueue[*task](limits)}
}

// Acquire waits for a slot until the context ends, and returns what frees it again.
func (s *Slots) Acquire(ctx context.Context, namespace string) (release func(), err error) {
	woken := make(chan struct{})
	t := &task{start: func() { close(woken) }}
	if !s.join(namespace, t, false) {
		return nil, ErrBusy
	}
	release = sync.OnceFunc(func() { s.leave(t) })
	select {
	case <-woken:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

// TryAcquire is Acquire for who does not wait: ErrBusy says that there is no slot now.
func (s *Slots) TryAcquire(namespace string) (release func(), err error) {
	woken := make(chan struct{})
	t := &task{start: func() { close(woken) }}
	s.join(namespace, t, true)
	release = sync.OnceFunc(func() { s.leave(t) })
	select {
	case <-woken:
		return release, nil
	default:
		release()
		return nil, ErrBusy
	}
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
	s.join(namespace, t, true)
}

// Loads are those of the namespaces that have a task.
func (s *Slots) Loads() map[string]Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Loads()
}

func (s *Slots) join(namespace string, t *task, anyway bool) (joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !anyway && s.queue.Full(namespace) {
		return false
	}
	s.queue.Join(namespace, t)
	s.wake()
	return true
}

func (s *Slots) leave(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.Leave(t)
	s.wake()
}

// wake starts the tasks that have a slot now.
func (s *Slots) wake() {
	for {
		t, given := s.queue.Next()
		if !given {
			return
		}
		t.start()
	}
}
