// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// tick is how often the generator looks which requests are due.
	tick = 5 * time.Millisecond
	// knock is how long it waits between two attempts to reach the target at first.
	knock = 100 * time.Millisecond
)

// Generator calls a server and counts.
type Generator struct {
	config   Config
	clock    clock.WithTicker
	recorder *recorder
	pool     *pool
	slots    chan struct{}
	// These series are what is sent beside the main load.
	control, probes, controlProbes, streams, held Counter
}

// New returns a generator. The error says what is wrong with the configuration.
// Random decides which connections are new and how long each lives.
func New(config Config, clk clock.WithTicker, random *rand.Rand) (*Generator, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Generator{
		config:   config,
		clock:    clk,
		recorder: newRecorder(),
		pool:     newPool(config, random),
		slots:    make(chan struct{}, config.MaxInFlight),
	}, nil
}

// Run waits until the target answers and then sends requests until the
// configured duration is over or ctx is done. It returns when every request that
// it sent has an outcome: the end of ctx cuts no request off.
func (g *Generator) Run(ctx context.Context) {
	if !g.reach(ctx) {
		return
	}
	ticker := g.clock.NewTicker(tick)
	defer ticker.Stop()
	defer g.pool.close()
	var running sync.WaitGroup
	defer running.Wait()
	beside, end := context.WithCancel(ctx)
	defer end()
	g.startBeside(beside, &running)
	calls := context.WithoutCancel(ctx)
	started, handled := g.clock.Now(), int64(0)
	g.recorder.begin(started)
	for {
		elapsed := min(g.clock.Since(started), g.config.Duration)
		for range due(elapsed, g.config.Rate, handled) {
			handled++
			g.start(calls, &running)
		}
		if elapsed == g.config.Duration {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// startBeside starts what the configuration wants beside the main load.
func (g *Generator) startBeside(ctx context.Context, running *sync.WaitGroup) {
	c := g.config
	if c.Control != "" {
		running.Go(func() { g.repeat(ctx, c.controlEvery(), g.callControl) })
	}
	if c.ProbeEvery > 0 {
		running.Go(func() { g.runProbes(ctx, c.Target, &g.probes) })
	}
	if c.ProbeEvery > 0 && c.Control != "" {
		running.Go(func() { g.runProbes(ctx, c.Control, &g.controlProbes) })
	}
	if c.StreamFor > 0 {
		running.Go(func() { g.repeat(ctx, c.StreamFor/streamsAtOnce, g.callStream) })
	}
	if c.HoldEvery > 0 {
		running.Go(func() { g.runHeld(ctx) })
	}
}

// reach waits for the first answer of the app: a target that is still being set
// up is no failure. It returns false when ctx ends before. Its own requests are
// not counted.
func (g *Generator) reach(ctx context.Context) bool {
	for {
		limited, cancel := context.WithTimeout(ctx, g.config.Timeout)
		s := newSession(1)
		o := s.call(limited, g.config.Target, g.clock)
		s.close()
		cancel()
		if o.kind.answered() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-g.clock.After(knock):
		}
	}
}

// due is the number of requests to send now, so that rate·elapsed have been sent
// in total: a late tick is made up for.
func due(elapsed time.Duration, rate int, handled int64) int64 {
	return max(int64(elapsed.Seconds()*float64(rate))-handled, 0)
}

// start sends one request without waiting for it, or counts that it could not.
func (g *Generator) start(ctx context.Context, running *sync.WaitGroup) {
	select {
	case g.slots <- struct{}{}:
	default:
		g.recorder.skip(1)
		return
	}
	number := g.recorder.send()
	running.Go(func() {
		defer func() { <-g.slots }()
		g.call(ctx, number)
	})
}

// call sends the request with a number and counts its outcome.
func (g *Generator) call(ctx context.Context, number int64) {
	limited, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	s := g.pool.take(g.clock.Now())
	o := s.call(limited, g.config.Target, g.clock)
	g.pool.give(s)
	g.recorder.finish(g.clock.Now(), number, o)
}

// Report returns everything counted so far.
func (g *Generator) Report() Report {
	report := g.recorder.report(g.clock.Now())
	report.OldestConnection = g.pool.oldest()
	report.Target, report.Rate = g.config.Target, g.config.Rate
	report.Control, report.ControlProbes = g.control.Series(), g.controlProbes.Series()
	report.Probes, report.Streams, report.Held = g.probes.Series(), g.streams.Series(), g.held.Series()
	return report
}

// Handler serves the report at /report and the probe at /healthz.
func (g *Generator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// An error here is the reader's connection: there is nobody left to tell.
		_ = json.NewEncoder(w).Encode(g.Report())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	})
	return mux
}
