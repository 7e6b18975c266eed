// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"sync"
)

// ErrBusy says that too many tasks of the namespace wait already.
var ErrBusy = errors.New("too many of the namespace wait already")

// Slots are those of a Queue, for several goroutines.
type Slots struct {
	mu    sync.Mutex
	queue *Queue
	woken map[Ticket]chan struct{}
}

// NewSlots makes slots that are all free.
func NewSlots(limits Limits) *Slots {
	return &Slots{queue: NewQueue(limits), woken: map[Ticket]chan struct{}{}}
}

// Acquire waits for a slot until the context ends, and returns what frees it again.
func (s *Slots) Acquire(ctx context.Context, namespace string) (release func(), err error) {
	s.mu.Lock()
	t, joined := s.queue.Join(namespace)
	if !joined {
		s.mu.Unlock()
		return nil, ErrBusy
	}
	woken := make(chan struct{})
	s.woken[t] = woken
	s.wake()
	s.mu.Unlock()
	release = sync.OnceFunc(func() { s.leave(t) })
	select {
	case <-woken:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

func (s *Slots) leave(t Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.woken, t)
	s.queue.Leave(t)
	s.wake()
}

// wake tells those that have a slot now.
func (s *Slots) wake() {
	for {
		t, given := s.queue.Next()
		if !given {
			return
		}
		close(s.woken[t])
	}
}
