// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"context"
	"sync"
	"time"
)

// controlPause is the longest time between two requests to the control.
const controlPause = 50 * time.Millisecond

// controlEvery is the time between two requests to the control, each on a connection of its
// own: as many as the target gets new connections.
func (c Config) controlEvery() time.Duration {
	if fresh := c.Rate * c.FreshPercent; fresh > 0 {
		return min(controlPause, 100*time.Second/time.Duration(fresh))
	}
	return controlPause
}

// repeat calls do in a goroutine of its own at each turn of the ticker, whatever became of
// those before. When ctx ends it returns after the last one has.
func (g *Generator) repeat(ctx context.Context, every time.Duration, do func(context.Context)) {
	ticker := g.clock.NewTicker(every)
	defer ticker.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		running.Go(func() { do(context.WithoutCancel(ctx)) })
	}
}

// callControl calls the control once, on a connection of its own.
func (g *Generator) callControl(ctx context.Context) {
	number := g.control.begin()
	now, o := g.callOnce(ctx, g.config.Control, g.config.Timeout)
	g.control.finish(now, number, o)
}

// callOnce sends one request on a connection of its own.
func (g *Generator) callOnce(ctx context.Context, target string, timeout time.Duration) (time.Time, outcome) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s := newSession(1)
	defer s.close()
	o := s.call(limited, target, g.clock)
	return g.clock.Now(), o
}
