// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"context"
	"sync"
	"time"
)

const (
	// controlEvery is the time between two requests to the control.
	controlEvery = 50 * time.Millisecond
	// controlSlow is what is far beyond any time that a server takes to say that it is
	// there, on a machine that runs it and loses no packet: one of a new connection costs a
	// second.
	controlSlow = time.Second
)

// ControlReport tells of a server that nothing is done to, called all the time. Where it is
// slow, the machine is, and so are all others.
type ControlReport struct {
	// Requests that have ended; Slow counts those that took a second or more, or were not
	// answered.
	Requests int64 `json:"requests"`
	Slow     int64 `json:"slow"`
	// Slowest is how long the slowest took, in seconds.
	Slowest float64 `json:"slowest"`
}

// control calls a server that nothing is done to.
type control struct {
	mu     sync.Mutex
	report ControlReport
}

// run calls the control until ctx ends. Each request is on a connection of its own and is
// due whatever became of those before.
func (g *Generator) runControl(ctx context.Context) {
	ticker := g.clock.NewTicker(controlEvery)
	defer ticker.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		running.Go(func() {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.config.Timeout)
			defer cancel()
			s := newSession(1)
			defer s.close()
			g.control.finish(s.call(limited, g.config.Control, g.clock))
		})
	}
}

func (c *control) finish(o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Requests++
	c.report.Slowest = max(c.report.Slowest, o.latency.Seconds())
	if !o.kind.answered() || o.latency >= controlSlow {
		c.report.Slow++
	}
}

// get is what was counted so far.
func (c *control) get() ControlReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}
