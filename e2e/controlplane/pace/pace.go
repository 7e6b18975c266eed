// SPDX-License-Identifier: Apache-2.0

// Package pace has tests of one control plane begin no faster than it serves those that run.
//
// How many tests a control plane serves at once depends on the machine, and on what else the
// machine does at that moment. With too many, each request takes longer, until those that run
// fail at their time limits.
package pace

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// window is how long a request counts after it was answered.
	window = 10 * time.Second
	// slow is what an API server that keeps up takes for hardly any request.
	slow = time.Second
	// oneIn is the share of slow requests at which the control plane is behind: one in so many.
	oneIn = 10
	// pause is between looks, and between the starts of tests that had to wait.
	pause = time.Second
)

// Gauge tells from the requests of its clients whether a control plane keeps up.
type Gauge struct {
	clock clock.Clock

	// turn has room for the test that begins.
	turn chan struct{}
	// waited is when a test began that had to wait.
	waited time.Time

	mu sync.Mutex
	// answered are the requests of the window.
	answered []answer
	// open are the requests that are not answered yet, with the times of their starts.
	open map[*http.Request]time.Time
}

// answer is a request that was answered.
type answer struct {
	at   time.Time
	slow bool
}

// New makes a Gauge.
func New(clk clock.Clock) *Gauge {
	return &Gauge{clock: clk, turn: make(chan struct{}, 1), open: map[*http.Request]time.Time{}}
}

// Begin returns when the control plane keeps up, and how long it took until then. Tests that
// have to wait begin one after the other.
func (g *Gauge) Begin() (waited time.Duration) {
	began := g.clock.Now()
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	mustWait := func() bool { return g.behind() || g.clock.Since(g.waited) < pause }
	if !mustWait() {
		return 0
	}
	for mustWait() {
		g.clock.Sleep(pause)
	}
	g.waited = g.clock.Now()
	return g.waited.Sub(began)
}

// Transport measures the requests that pass, watches apart, which are open for as long as the
// client wants. It fits [rest.Config.Wrap].
func (g *Gauge) Transport(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") != "true" {
			defer g.measure(r)()
		}
		return next.RoundTrip(r)
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// measure notes a request, and that it is answered when what it returns is called.
func (g *Gauge) measure(r *http.Request) (answered func()) {
	began := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[r] = began
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, r)
		now := g.clock.Now()
		g.answered = append(g.answered, answer{at: now, slow: now.Sub(began) > slow})
	}
}

// behind tells whether too many requests take too long, or will.
func (g *Gauge) behind() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.answered = slices.DeleteFunc(g.answered, func(a answer) bool { return now.Sub(a.at) > window })
	all, late := len(g.answered), 0
	for _, a := range g.answered {
		if a.slow {
			late++
		}
	}
	for _, began := range g.open {
		if now.Sub(began) > slow {
			all++
			late++
		}
	}
	return late*oneIn > all
}
