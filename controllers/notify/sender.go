// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/poll"
)

// Sender delivers requests in the background until they are taken. It is safe for
// use from several goroutines, and none of its methods but Start blocks.
type Sender struct {
	options Options
	clock   clock.WithTicker
	caller  *caller
	queue   workqueue.TypedDelayingInterface[*delivery]
	backoff workqueue.TypedRateLimiter[*delivery]
	metrics *telemetry

	// unreported are the Rollouts whose results changed, each once, however late
	// they are received.
	unreported workqueue.TypedInterface[types.NamespacedName]
	changed    chan event.TypedGenericEvent[types.NamespacedName]

	mu         sync.Mutex
	deliveries map[types.NamespacedName]map[string]*delivery
	gate       gate
}

// delivery is one request under way. It is at one place at a time: in the queue,
// delayed by it, at the gate, or waiting for a slot or in it.
type delivery struct {
	rollout types.NamespacedName
	request Request
	// lane is that of its namespace for the host and port that it goes to.
	lane string

	// The Sender's lock guards what follows.
	result    Result
	forgotten bool
	cancel    context.CancelFunc // of the attempt that runs
}

// New makes a Sender. Secrets are read one by one, from the API and not from a
// cache, since the operator may not list them.
func New(secrets client.Reader, policy egress.Policy, clk clock.WithTicker, options Options) *Sender {
	options = options.withDefaults()
	return &Sender{
		options: options,
		clock:   clk,
		caller:  newCaller(secrets, policy, options),
		queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[*delivery]{
			Name: "outbound", Clock: clk,
		}),
		backoff:    workqueue.NewTypedItemExponentialFailureRateLimiter[*delivery](options.FirstRetry, options.MaxRetry),
		metrics:    newTelemetry(),
		unreported: workqueue.NewTyped[types.NamespacedName](),
		changed:    make(chan event.TypedGenericEvent[types.NamespacedName]),
		deliveries: map[types.NamespacedName]map[string]*delivery{},
		gate:       gate{limit: options.PerHost, lanes: map[string]*lane{}},
	}
}

// Send hands a request over. A request whose ID is known already changes nothing,
// unless its endpoint is another one and it was not settled: then it starts afresh
// there, since a user corrected the endpoint.
func (s *Sender) Send(rollout types.NamespacedName, r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.deliveries[rollout][r.ID]; found {
		if known.result.Outcome.Final() || reflect.DeepEqual(known.request.Endpoint, r.Endpoint) {
			return
		}
		s.forget(known)
	}
	r.Endpoint = *r.Endpoint.DeepCopy()
	r.Body = bytes.Clone(r.Body)
	d := &delivery{rollout: rollout, request: r, lane: rollout.Namespace + "/" + hostOf(r.Endpoint.URL)}
	if s.deliveries[rollout] == nil {
		s.deliveries[rollout] = map[string]*delivery{}
	}
	s.deliveries[rollout][r.ID] = d
	s.metrics.unsettled.Inc()
	s.queue.Add(d)
}

// Results returns what became of a Rollout's requests, by ID.
func (s *Sender) Results(rollout types.NamespacedName) map[string]Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make(map[string]Result, len(s.deliveries[rollout]))
	for id, d := range s.deliveries[rollout] {
		results[id] = d.result
	}
	return results
}

// Keep forgets every request of a Rollout but those with the given IDs; without
// any, all of them. What is being sent is cancelled.
func (s *Sender) Keep(rollout types.NamespacedName, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range maps.Clone(s.deliveries[rollout]) {
		if !slices.Contains(ids, id) {
			s.forget(d)
		}
	}
}

// forget drops a delivery; the queue and the gate let go of it when they come to it.
func (s *Sender) forget(d *delivery) {
	d.forgotten = true
	if d.cancel != nil {
		d.cancel()
	}
	if !d.result.Outcome.Final() {
		s.metrics.unsettled.Dec()
	}
	s.backoff.Forget(d)
	delete(s.deliveries[d.rollout], d.request.ID)
	if len(s.deliveries[d.rollout]) == 0 {
		delete(s.deliveries, d.rollout)
	}
}

// Changed carries the Rollouts for which Results gives another outcome or message.
func (s *Sender) Changed() <-chan event.TypedGenericEvent[types.NamespacedName] { return s.changed }

// NeedLeaderElection is true: what every replica sent would be sent several times.
func (s *Sender) NeedLeaderElection() bool { return true }

// Start sends until ctx ends. What is being sent then is cancelled; it is handed
// over again to the next leader.
func (s *Sender) Start(ctx context.Context) error {
	var telling sync.WaitGroup
	telling.Go(func() { s.notify(ctx) })
	context.AfterFunc(ctx, func() {
		s.queue.ShutDown()
		s.unreported.ShutDown()
	})
	poll.Serve(s.queue, s.options.Slots, func(d *delivery) (string, bool) { return d.rollout.Namespace, true }, func(d *delivery) { s.deliver(ctx, d) })
	telling.Wait()
	return nil
}

// notify passes on whose results changed.
func (s *Sender) notify(ctx context.Context) {
	for {
		rollout, over := s.unreported.Get()
		if over {
			return
		}
		select {
		case s.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: rollout}:
		case <-ctx.Done():
		}
		s.unreported.Done(rollout)
	}
}
