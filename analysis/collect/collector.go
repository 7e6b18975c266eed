// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// Source reads the counters of a target.
type Source interface {
	// Scrape reads every pod of the target once. The argument at becomes the
	// time of the Scrape. It returns an error only when no pod could be read;
	// it must return soon after ctx ends.
	Scrape(ctx context.Context, t analysis.Target, at time.Time) (analysis.Scrape, error)
}

// Clock is the part of k8s.io/utils/clock.Clock that is needed.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

const (
	// DefaultInterval is the time between two scrapes of a target, and so the
	// length of a window.
	DefaultInterval = 5 * time.Second
	// DefaultConcurrency is how many targets are scraped at the same time.
	DefaultConcurrency = 32
	// DefaultKeep is how many windows of each target are kept: ten minutes.
	DefaultKeep = 120
)

// Options configure a Collector. Zero fields take their defaults.
type Options struct {
	// Interval is the time between scrapes; DefaultInterval when zero.
	Interval time.Duration
	// Concurrency is how many targets are scraped at once; DefaultConcurrency
	// when zero.
	Concurrency int
	// Keep is how many windows are kept per target; DefaultKeep when zero. Older
	// ones are forgotten, read or not.
	Keep int
	// Notify is called after each new window and each change of health of a
	// target, from the goroutine that scraped it. It must not block. Optional.
	Notify func(key string)
}

func (o Options) withDefaults() Options {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	return o
}

// Collector polls targets. Make one with New and start it with Run. All methods
// may be called from any goroutine, before, during and after Run.
type Collector struct {
	source  Source
	clock   Clock
	options Options
	slots   chan struct{} // one token for each scrape under way
	wake    chan struct{} // holds a token when a target wants a scrape before the next round

	mu      sync.Mutex
	targets map[string]*target
}

// New makes a Collector that scrapes source by the given clock.
func New(source Source, clock Clock, options Options) *Collector {
	options = options.withDefaults()
	return &Collector{
		source:  source,
		clock:   clock,
		options: options,
		slots:   make(chan struct{}, options.Concurrency),
		wake:    make(chan struct{}, 1),
		targets: map[string]*target{},
	}
}

// Watch has the target measured under the given key, or updates what is
// measured. With a confirmed weight it is scraped at once and then in each
// round, so that a window begins right after the confirmation.
// Calling it again with the same arguments changes nothing. Windows close only while the weight is confirmed: call it with
// weight.Since zero before writing a new weight, and with the time of the
// confirmation after. Naming other backends forgets what was measured; other
// pods do not.
func (c *Collector) Watch(key string, t analysis.Target, weight analysis.Weight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.targets[key]
	if !ok || !known.sameBackends(t) {
		known = &target{}
		c.targets[key] = known
	}
	if known.spec.Equal(t) && known.weight == weight {
		return
	}
	known.spec, known.weight = t.Clone(), weight
	if !weight.Since.IsZero() {
		known.eager = true
		c.wakeUp()
	}
}

// Forget ends the measuring of a key and drops its windows.
func (c *Collector) Forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.targets, key)
}

// Windows returns the kept windows of a key that ended after the given time,
// oldest first, and how well it is being measured. An unknown key has neither.
func (c *Collector) Windows(key string, after time.Time) ([]analysis.Window, analysis.Health) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.targets[key]
	if !ok {
		return nil, analysis.Health{}
	}
	return t.windowsAfter(after), t.health
}

// Run polls until ctx ends, waits for the scrapes under way and returns nil. It
// may be called once.
func (c *Collector) Run(ctx context.Context) error {
	var scrapes sync.WaitGroup
	defer scrapes.Wait()
	for next := c.clock.Now(); ; {
		c.start(ctx, &scrapes, func(*target) bool { return true })
		next = nextRound(next, c.clock.Now(), c.options.Interval)
		if !c.wait(ctx, &scrapes, next) {
			return nil
		}
	}
}

// wait passes the time until the next round, and scrapes the targets that
// cannot wait for it. It returns false when ctx has ended.
func (c *Collector) wait(ctx context.Context, scrapes *sync.WaitGroup, next time.Time) bool {
	due := c.clock.After(next.Sub(c.clock.Now()))
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due:
			return true
		case <-c.wake:
			c.start(ctx, scrapes, func(t *target) bool { return t.eager })
		}
	}
}

// wakeUp has Run look for eager targets; one token is enough for all of them.
func (c *Collector) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// nextRound is the first multiple of the interval after last that is still to
// come: rounds do not drift, and missed ones are not made up for.
func nextRound(last, now time.Time, interval time.Duration) time.Time {
	missed := max(0, int64(now.Sub(last)/interval))
	return last.Add(time.Duration(missed+1) * interval)
}

// start starts a scrape of every wanted target that is not being scraped.
func (c *Collector) start(ctx context.Context, scrapes *sync.WaitGroup, wanted func(*target) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, t := range c.targets {
		if t.busy || !wanted(t) {
			continue
		}
		t.busy = true
		scrapes.Go(func() { c.scrape(ctx, key, t) })
	}
}

// scrape reads one target once there is a free slot, and stores what it gave.
func (c *Collector) scrape(ctx context.Context, key string, t *target) {
	select {
	case <-ctx.Done():
		return
	case c.slots <- struct{}{}:
	}
	spec := c.begin(t)
	// Whole microseconds survive being stored in the API, so that the end of a
	// window can be compared with what was stored of it.
	at := c.clock.Now().Truncate(time.Microsecond)
	scrape, err := c.read(ctx, spec, at)
	<-c.slots
	if ctx.Err() != nil {
		// Stopping is not a fault of the target.
		return
	}
	if c.store(key, t, scrape, err) {
		c.options.Notify(key)
	}
}

// read asks the source, which must not take longer than one interval: a round
// later its answer would be of no use. A source that panics is a source that
// could not be read.
func (c *Collector) read(ctx context.Context, spec analysis.Target, at time.Time) (s analysis.Scrape, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Interval)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			s, err = analysis.Scrape{}, fmt.Errorf("the source panicked: %v", p)
		}
	}()
	if len(spec.Pods) == 0 {
		return analysis.Scrape{}, errNoPods
	}
	return c.source.Scrape(ctx, spec, at)
}

var errNoPods = errors.New("there are no proxies to read")

// begin is what to scrape for a target, from now on no longer eager.
func (c *Collector) begin(t *target) analysis.Target {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.eager = false
	return t.spec
}

// release ends the scrape of a target. If what is measured changed meanwhile,
// the scrape came too early, and the next one is due at once.
func (c *Collector) release(t *target) {
	t.busy = false
	if t.eager {
		c.wakeUp()
	}
}

// store puts a scrape into its target and reports whether its owner is to be
// told. A target that was forgotten or replaced meanwhile is left alone.
func (c *Collector) store(key string, t *target, s analysis.Scrape, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(t)
	if c.targets[key] != t {
		return false
	}
	return t.add(s, err, c.options.Keep)
}
