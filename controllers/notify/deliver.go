// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/serin-dev/serin/controllers/kit/tracing"
)

// spread is how much of a delay is added to it at random, at most.
const spread = 0.25

// deliver makes one attempt, unless the delivery was forgotten or has to wait.
func (s *Sender) deliver(ctx context.Context, d *delivery) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.begin(d, cancel) {
		return
	}
	started := s.clock.Now()
	calling, span := tracing.Background(ctx, "notify", d.rollout)
	tracing.Note(calling, tracing.Host, hostOf(d.request.Endpoint.URL))
	a := s.caller.call(calling, d.rollout.Namespace, d.request)
	tracing.Note(calling, tracing.Result, a.outcome.String())
	tracing.End(span, a.err())
	if ctx.Err() != nil { // forgotten, or the end: that says nothing about the endpoint
		s.giveUp(d)
		return
	}
	s.metrics.attempt(a.outcome, s.clock.Since(started))
	if delay, again := s.finish(d, a); again {
		s.queue.AddAfter(d, delay)
	}
}

// begin reports whether an attempt may be made now.
func (s *Sender) begin(d *delivery, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.forgotten {
		s.wake(d.lane)
		return false
	}
	if !s.gate.enter(d) {
		return false
	}
	d.cancel = cancel
	return true
}

// giveUp ends an attempt that was cancelled.
func (s *Sender) giveUp(d *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(d)
}

// finish records an answer and returns when to send again, if at all.
func (s *Sender) finish(d *delivery, a answer) (delay time.Duration, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(d)
	if d.forgotten {
		return 0, false
	}
	before := d.result
	d.result = Result{Outcome: a.outcome, Attempts: before.Attempts + 1, Message: a.message}
	if before.Outcome != a.outcome || before.Message != a.message {
		s.unreported.Add(d.rollout)
	}
	if a.outcome.Final() {
		s.metrics.unsettled.Dec()
	}
	return s.delay(d, a)
}

// leave makes room for the next in the same lane.
func (s *Sender) leave(d *delivery) {
	d.cancel = nil
	s.gate.leave(d)
	s.wake(d.lane)
}

// wake lets the first delivery that waits in a lane come back.
func (s *Sender) wake(lane string) {
	if next := s.gate.next(lane); next != nil {
		s.queue.Add(next)
	}
}

// delay is when to send again, if at all: not before the endpoint wants it,
// but never later than the longest back-off.
func (s *Sender) delay(d *delivery, a answer) (delay time.Duration, again bool) {
	switch a.outcome {
	case Delivered, Refused:
		s.backoff.Forget(d)
		return 0, false
	case NotYet:
		s.backoff.Forget(d)
		delay = s.options.CallAgain
	default:
		delay = s.backoff.When(d)
	}
	return wait.Jitter(max(delay, min(a.retryAfter, s.options.MaxRetry)), spread), true
}
