// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/metricsapi/observe"
)

const (
	// DefaultTimeout is how long a Source may take.
	DefaultTimeout = 10 * time.Second
	// DefaultScopes is how many namespaces' snapshots are kept.
	DefaultScopes = 256
	// retry is how long an answer is kept that may be better the next moment: an
	// error, or a snapshot that is due to be followed by the next one.
	retry = time.Second
	// logEvery is how often the log says that the source can't be read.
	logEvery = 30 * time.Second
)

// Options configure a Provider. Zero fields take their defaults.
type Options struct {
	// Timeout of one observation; DefaultTimeout when zero. It does not end when the
	// request does that it was made for: others may wait for it too.
	Timeout time.Duration
	// Scopes is how many namespaces' snapshots are kept; DefaultScopes when zero.
	Scopes int
}

// Provider answers requests from one Source. It is safe for concurrent use.
type Provider struct {
	source    observe.Source
	inventory observe.Inventory
	clock     clock.PassiveClock
	timeout   time.Duration
	flights   singleflight.Group
	// kept has the last observation of each scope that was asked for lately.
	kept   *cache.LRUExpireCache
	logged rate.Sometimes
}

// observation is what a source said of a scope.
type observation struct {
	snapshot observe.Snapshot
	err      error
}

var _ observe.Provider = (*Provider)(nil)

// NewProvider makes a Provider.
func NewProvider(source observe.Source, inventory observe.Inventory, clock clock.PassiveClock, o Options) *Provider {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Scopes <= 0 {
		o.Scopes = DefaultScopes
	}
	return &Provider{
		source: source, inventory: inventory, clock: clock, timeout: o.Timeout,
		kept: cache.NewLRUExpireCacheWithClock(o.Scopes, clock), logged: rate.Sometimes{Interval: logEvery},
	}
}

// Metrics returns what the resources that are asked for received and sent.
func (p *Provider) Metrics(ctx context.Context, r observe.Request) (observe.Answer, error) {
	s, err := p.snapshot(ctx, r)
	if err != nil {
		return observe.Answer{}, err
	}
	return observe.Answer{Items: Metrics(s, p.inventory, r), Warnings: warnings(s)}, nil
}

// Edges returns an item for each edge of the resource r.Name.
func (p *Provider) Edges(ctx context.Context, r observe.Request) (observe.Answer, error) {
	s, err := p.snapshot(ctx, r)
	if err != nil {
		return observe.Answer{}, err
	}
	return observe.Answer{Items: Edges(s, p.inventory, r), Warnings: warnings(s)}, nil
}

func warnings(s observe.Snapshot) []string {
	if s.Partial == "" {
		return nil
	}
	return []string{s.Partial}
}

// scope is the namespace whose flows a request needs; "" for all.
func scope(r observe.Request) string {
	if r.Kind == observe.Namespaces {
		return r.Name
	}
	return r.Namespace
}

// snapshot is the last window: a kept one while there can be no newer one, otherwise
// what the source says. Requests of one scope wait for the same observation, and for
// nothing else.
func (p *Provider) snapshot(ctx context.Context, r observe.Request) (observe.Snapshot, error) {
	namespace := scope(r)
	for _, covering := range []string{namespace, ""} {
		kept, _ := p.kept.Get(covering)
		if o, fresh := kept.(observation); fresh && (covering == namespace || o.err == nil) {
			return o.snapshot, o.err
		}
	}
	done := p.flights.DoChan(namespace, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
		defer cancel()
		s, err := p.source.Observe(ctx, namespace)
		if err != nil && ctx.Err() != nil {
			err = &observe.UnavailableError{Message: "the source of the metrics did not answer in time", Cause: err}
		}
		p.log(ctx, namespace, err)
		p.kept.Add(namespace, observation{s, err}, keepFor(s, err, p.clock.Now()))
		return s, err
	})
	select {
	case <-ctx.Done():
		return observe.Snapshot{}, ctx.Err()
	case result := <-done:
		s, _ := result.Val.(observe.Snapshot)
		return s, result.Err
	}
}

// log says why a source said nothing, now and then: users don't see the cause.
func (p *Provider) log(ctx context.Context, namespace string, err error) {
	if unavailable, ok := errors.AsType[*observe.UnavailableError](err); ok && unavailable.Cause != nil {
		p.logged.Do(func() {
			klog.FromContext(ctx).Error(unavailable.Cause, "Traffic could not be read", "namespace", namespace, "answer", unavailable.Message)
		})
	}
}

// keepFor is how long there can be no newer snapshot: until a window has passed since
// the end of this one, and not at that moment itself, at which the cache still answers.
func keepFor(s observe.Snapshot, err error, now time.Time) time.Duration {
	next := s.End.Add(s.End.Sub(s.Start)).Sub(now)
	if err != nil || next < retry {
		next = retry
	}
	return next - 1
}
