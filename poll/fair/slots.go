// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy says that others come first: there is no slot, or too many tasks of the namespace
// wait for one already.
var ErrBusy = errors.New("others come first")

// ErrRecalled is the cause why the context of a task ended that kept its slot for too long
// while a namespace without one waited.
var ErrRecalled = errors.New("others wait for too long")

// Slots are those of a Queue, for several goroutines.
type Slots struct {
	keep  time.Duration
	mu    sync.Mutex
	queue *Queue[*task]
}

// task is told once that it has a slot, and may be told to stop, both under the lock.
type task struct{ start, stop func() }

// NewSlots makes slots that are all free.
func NewSlots(limits Limits) *Slots {
	return &Slots{keep: limits.Keep, queue: NewQueue[*task](limits)}
}

// Acquire waits for a slot until the context ends. It returns the context of the task, which
// may end by ErrRecalled, and what frees the slot again.
func (s *Slots) Acquire(ctx context.Context, namespace string) (held context.Context, release func(), err error) {
	return s.acquire(ctx, namespace, s.queue.Full)
}

// TryAcquire is Acquire for who does not wait: ErrBusy says that there is no slot now. It
// recalls no task.
func (s *Slots) TryAcquire(ctx context.Context, namespace string) (held context.Context, release func(), err error) {
	return s.acquire(ctx, namespace, func(namespace string) bool { return !s.queue.may(namespace) })
}

func (s *Slots) acquire(ctx context.Context, namespace string, refuse func(string) bool) (context.Context, func(), error) {
	held, cancel := context.WithCancelCause(ctx)
	woken := make(chan struct{})
	t := &task{start: func() { close(woken) }, stop: func() { cancel(ErrRecalled) }}
	if !s.join(namespace, t, refuse) {
		cancel(nil)
		return nil, nil, ErrBusy
	}
	release := sync.OnceFunc(func() { s.leave(t); cancel(nil) })
	select {
	case <-woken:
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
	if s.keep == 0 {
		return held, release, nil
	}
	timer := time.AfterFunc(s.keep, func() { s.overstay(t) })
	return held, func() { timer.Stop(); release() }, nil
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
	s.join(namespace, t, func(string) bool { return false })
}

// Loads are those of the namespaces that have a task.
func (s *Slots) Loads() map[string]Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Loads()
}

func (s *Slots) join(namespace string, t *task, refuse func(namespace string) bool) (joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refuse(namespace) {
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
