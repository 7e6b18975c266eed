// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/poll/fair"
)

// Task is what is done again and again.
type Task struct {
	// Namespace is whose slots the task takes.
	Namespace string
	// From begins the grid on which the task is due: at From and after each Every.
	From  time.Time
	Every time.Duration
	// Do is called by one goroutine at a time. Its context ends when the task is removed
	// or replaced, and when the Poller stops: what was read then must not be stored.
	Do func(ctx context.Context)
}

// left is how long it is until a task is due next. What was missed is not made up for, so
// that a task never drifts.
func (t *Task) left(now time.Time) time.Duration {
	since := now.Sub(t.From) % t.Every
	if since < 0 { // the clock was set back
		since += t.Every
	}
	return t.Every - since
}

// Poller does tasks. All methods may be called from any goroutine, before, during and
// after Run.
type Poller[K comparable] struct {
	clock clock.PassiveClock
	slots *fair.Slots
	due   workqueue.TypedDelayingInterface[K]

	mu    sync.Mutex
	tasks map[K]*entry
}

// entry is a task, and what ends the run of it that is under way.
type entry struct {
	Task
	end context.CancelFunc
}

// New makes a Poller that does as many tasks at the same time as there are slots.
func New[K comparable](c clock.WithTicker, slots *fair.Slots) *Poller[K] {
	return &Poller[K]{
		clock: c, slots: slots, tasks: map[K]*entry{},
		due: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Clock: c}),
	}
}

// Set adds a task, or replaces the one with the same key. It is done when it is due next,
// not now.
func (p *Poller[K]) Set(key K, t Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(key)
	p.tasks[key] = &entry{Task: t, end: func() {}}
	p.due.AddAfter(key, t.left(p.clock.Now()))
}

// Now does a task at once, and once more if it is being done.
func (p *Poller[K]) Now(key K) { p.due.Add(key) }

// Remove ends a task. Nothing is stored of it any more when Remove returns, if Do checks
// its context under the lock that the caller holds.
func (p *Poller[K]) Remove(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(key)
}

func (p *Poller[K]) remove(key K) {
	if e := p.tasks[key]; e != nil {
		e.end()
		delete(p.tasks, key)
	}
}

// Run does tasks until ctx ends, waits for those under way, and returns nil. It may be
// called once.
func (p *Poller[K]) Run(ctx context.Context) error {
	context.AfterFunc(ctx, p.due.ShutDown)
	Serve(p.due, p.slots, p.namespace, func(key K) { p.work(ctx, key) })
	return nil
}

// namespace is that of a task, if it was not removed.
func (p *Poller[K]) namespace(key K) (of string, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.tasks[key]
	if e == nil {
		return "", false
	}
	return e.Namespace, true
}

// work does a task, and has it done again when it is due next.
func (p *Poller[K]) work(ctx context.Context, key K) {
	e, ctx := p.begin(ctx, key)
	if e == nil {
		return
	}
	e.Do(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	e.end()
	if p.tasks[key] == e {
		p.due.AddAfter(key, e.left(p.clock.Now()))
	}
}

// begin is the task to do; nil when it was removed.
func (p *Poller[K]) begin(ctx context.Context, key K) (*entry, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.tasks[key]
	if e == nil || ctx.Err() != nil {
		return nil, ctx
	}
	ctx, e.end = context.WithCancel(ctx)
	return e, ctx
}

// Clock is the part of k8s.io/utils/clock.Clock that Every needs.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Every does one thing, at once and then after each interval, until ctx ends.
func Every(ctx context.Context, c Clock, interval time.Duration, do func(ctx context.Context)) {
	for t := (Task{From: c.Now(), Every: interval}); ; {
		do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-c.After(t.left(c.Now())):
		}
	}
}
