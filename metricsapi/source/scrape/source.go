// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/poll"
	"github.com/serin-dev/serin/poll/fair"
	"github.com/serin-dev/serin/proxy/exposition"
)

const (
	// DefaultWindow is the time between two readings of the proxies.
	DefaultWindow = 15 * time.Second
	// MaxBody is the most bytes that are read of one proxy: three times what one that
	// tells as many clients apart as it can answers.
	MaxBody = 8 << 20

	// concurrency bounds how many answers of that size are in memory at once.
	concurrency = 4
	// outdated is after how many windows without a reading the last one is not reported.
	outdated = 3
)

// Reader reads one proxy; scrape.Client does. What it hands to use need not stay in memory
// after that, and its error is that of use.
type Reader interface {
	Read(ctx context.Context, address string, use func(exposition.Families) error, names ...string) error
}

// Options configure a Source.
type Options struct {
	// Reader reads the proxies, whose pods Proxies lists.
	Reader  Reader
	Proxies func() ([]Proxy, error)
	// Locate finds the pod that has an address. Without it flows have addresses only.
	Locate func(netip.Addr) (types.NamespacedName, bool)
	Clock  poll.Clock
	// Window is the time between two readings; DefaultWindow when zero.
	Window time.Duration
}

// Source observes traffic by Serin's own proxies. Start it with Run. It is safe for
// concurrent use.
type Source struct {
	options Options
	slots   *fair.Slots
	last    round // of Run alone

	mu       sync.Mutex
	snapshot observe.Snapshot
	problem  string
}

var _ observe.Source = (*Source)(nil)

// New makes a Source.
func New(o Options) *Source {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	return &Source{options: o, slots: fair.NewSlots(fair.Limits{Slots: concurrency}), problem: fmt.Sprintf("the proxies are read for the first time; ask again in %s", o.Window)}
}

// Run reads the proxies once in each window until ctx ends.
func (s *Source) Run(ctx context.Context) { poll.Every(ctx, s.options.Clock, s.options.Window, s.turn) }

// Observe returns the last window. It holds the flows of all namespaces.
func (s *Source) Observe(_ context.Context, _ string) (observe.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.problem != "":
		return observe.Snapshot{}, &observe.UnavailableError{Message: s.problem}
	case s.options.Clock.Now().Sub(s.snapshot.End) > outdated*s.options.Window:
		return observe.Snapshot{}, &observe.UnavailableError{Message: "the proxies were not read for a while"}
	}
	return s.snapshot, nil
}

// turn reads all proxies and makes a window of that and the previous reading.
func (s *Source) turn(ctx context.Context) {
	now, problem := s.read(ctx)
	if ctx.Err() != nil {
		return
	}
	before := s.last
	var snapshot observe.Snapshot
	switch {
	case problem != "":
		// The reading before stays the beginning, as long as it is not too old.
	case before.at.IsZero() || now.at.Sub(before.at) > outdated*s.options.Window:
		s.last = now
		problem = fmt.Sprintf("the proxies are read for the first time; ask again in %s", s.options.Window)
	default:
		s.last = now
		w := between(before, now)
		snapshot = observe.Snapshot{Start: before.at, End: now.at, Flows: w.flows(s.options.Locate), Partial: w.partial(now)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot, s.problem = snapshot, problem
}

// read reads all proxies; the problem is why none could be. It ends before the window does, so
// that the proxies of a namespace that don't answer in time make no window of others longer.
func (s *Source) read(ctx context.Context) (r round, problem string) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Window*2/3)
	defer cancel()
	pods, err := s.options.Proxies()
	if err != nil {
		return r, "the proxies could not be listed"
	}
	r = round{at: s.options.Clock.Now(), readings: make(map[string]reading, len(pods))}
	var mu sync.Mutex
	var busy sync.WaitGroup
	busy.Add(len(pods))
	for _, pod := range pods {
		s.slots.Go(pod.Namespace, func() {
			defer busy.Done()
			key, got, err := s.one(ctx, pod)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.missed, r.why = r.missed+1, err.Error()
				return
			}
			r.readings[key] = got
		})
	}
	busy.Wait()
	if len(r.readings) == 0 && r.missed > 0 {
		return r, fmt.Sprintf("none of %d proxies could be read: %s", r.missed, r.why)
	}
	return r, ""
}

// one reads one proxy.
func (s *Source) one(ctx context.Context, pod Proxy) (key string, r reading, err error) {
	err = s.options.Reader.Read(ctx, pod.Address, func(families exposition.Families) error {
		start, err := families.Start()
		if err == nil {
			key = pod.UID + "@" + start
			r, err = parse(families, pod.Namespace)
		}
		return err
	}, exposition.FlowRequests, exposition.FlowDurations)
	return key, r, err
}
