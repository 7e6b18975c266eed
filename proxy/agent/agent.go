// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/proxy/counts"
	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/sockets"
	"github.com/serin-dev/serin/proxy/udp"
	"github.com/serin-dev/serin/proxy/weights"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

const (
	// retryFirst and retryMost are how long to wait before a configuration that
	// failed is tried again.
	retryFirst = 2 * time.Second
	retryMost  = time.Minute
	// scrapeTimeout is how long the last counts wait to be fetched at the end.
	scrapeTimeout = 6 * time.Second
	// restoreAfter is how long another container waits to learn what is wanted, before it
	// serves what was live in the one before. With the API there, that takes less, and
	// weights that changed meanwhile are never served again.
	restoreAfter = 2 * time.Second
)

// Options are what an Agent needs.
type Options struct {
	// Render are the facts of the pod that nginx runs in.
	Render conf.Options
	// Server makes nginx, not started. killed is to be called when workers ended
	// on their own, with their number.
	Server func(killed func(workers int)) (Server, error)
	// Files holds what must stay open when the agent crashes. Default: fdstore.None.
	Files fdstore.Store
	// Pod is the UID of the pod that the agent runs in.
	Pod types.UID
	// Version of this program, which it says with what it serves.
	Version string
	// Feed says what to serve.
	Feed Feed
	// Served is called with what is served whenever that may have changed. Optional.
	Served func(confirmation.Served)
	// Listener of the probes and metrics.
	Listener net.Listener
	// Drain is how long requests are still served after a stop was asked for, until
	// everybody knows that this pod is leaving.
	Drain time.Duration
	// DrainLimit is how long they are still served while clients come that do not know it.
	// Default: Drain.
	DrainLimit time.Duration
	// QuitTimeout is how long requests may then take to finish.
	QuitTimeout time.Duration
	// ApplyTimeout bounds a start or a reload of nginx.
	ApplyTimeout time.Duration
	// Settle is how long before a reload answers ask clients to close their
	// connections, so that few are idle when the reload closes the idle ones.
	Settle time.Duration
	// Dial opens the connections by which a backend is tried before it gets
	// traffic. Default: those of a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Listen opens a socket for clients. Default: that of the system.
	Listen func(socket conf.Socket) (int, error)
	// Clock that everything waits by.
	Clock clock.WithTicker
	// Log of the agent.
	Log logr.Logger
}

// Agent runs nginx for one TrafficSplit.
type Agent struct {
	Options
	counts  *counts.Counter
	metrics *metrics
	status  *statusServer
	sockets *sockets.Sockets
	udp     *udp.Ports
	busy    *busy

	// The rest belongs to the goroutine of Run.

	server Server
	// instance is the number of the newest nginx, and tables are its weights.
	instance int
	tables   *weights.Tables
	// split that is live.
	split traffic.Split
	// rendering that is live; its key is "" before nginx serves for the first time.
	rendering conf.Rendering
	// generation that is live, and the digest of split.
	generation    int64
	configuration string
	draining      bool
	// drainEnds is until when nginx serves at most once it drains; zero when none serves.
	drainEnds time.Time
	// renew is whether another nginx has to be started, whatever is wanted: the last one has
	// ended, or what it and those before it serve is not known.
	renew bool
	// noted is what was live when the previous container ended; nil when that is not known.
	noted *state
	// killed is whether nginx was killed with the previous container.
	killed bool
}

// New makes an Agent.
func New(opts Options) *Agent {
	if opts.Dial == nil {
		opts.Dial = (&net.Dialer{}).DialContext
	}
	if opts.Files == nil {
		opts.Files = fdstore.None{}
	}
	if opts.Listen == nil {
		opts.Listen = sockets.Listen
	}
	a := &Agent{Options: opts, counts: counts.New(opts.Render.Dir.Counts(), opts.Clock), sockets: sockets.New(opts.Files, opts.Listen), busy: &busy{}}
	a.udp = udp.New(a.sockets, opts.Clock, opts.Log)
	a.busy.datagrams = a.udp.Received
	var registry *prometheus.Registry
	a.metrics, registry = newMetrics(append(a.udp.Collectors(), a.counts)...)
	a.status = newStatusServer(registry, confirmation.Served{Pod: a.Pod, Version: a.Version}, &a.busy.percent)
	return a
}

// Run serves until the context ends, and then drains and stops nginx. It returns
// an error when requests had to be cut off or could not be counted.
//
// When requests can't be counted any more, Run ends at once and leaves nginx running.
// The next agent reads on where the saved counts end, so nothing is lost, while counts
// that stand still would pass for missing traffic.
//
// When Files holds what another agent left, nginx runs: Run takes it over as
// it is. When the container is another one, Run serves what was live in the one before,
// unless the feed says within restoreAfter what is wanted.
func (a *Agent) Run(ctx context.Context) error {
	var err error
	if a.server, err = a.Server(a.counts.Killed); err != nil {
		return err
	}
	log, err := a.prepare()
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // only read
	// The work goes on while draining, after the caller's context has ended.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	tailer := accesslog.NewTailer(log, a.counts.Position(), a.Clock, a.counts)
	if err := tailer.CatchUp(); err != nil { // before a Prometheus sees the counts
		return err
	}
	retry := a.resume(work)
	failures := make(chan error, 2)
	go func() { failures <- a.status.run(work, a.Listener) }()
	go func() { failures <- a.Feed.Run(work) }()
	go a.busy.run(work, a.Render.Dir, a.Clock)

	finish, followed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(followed) // it is read once more at the end
		followed <- tailer.Run(work, finish)
	}()

	err = a.serve(ctx, work, retry, failures, followed)
	a.udp.Stop()
	close(finish)
	err = errors.Join(err, <-followed)
	if a.draining { // else the next agent has the counts
		a.status.awaitScrape(a.Clock.After(scrapeTimeout))
	}
	return err
}

// prepare makes what nginx and the agent need, and opens the access log.
func (a *Agent) prepare() (*os.File, error) {
	dir := a.Render.Dir
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", dir, err)
	}
	if !a.sockets.Inherited() {
		if err := a.outlive(); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", dir, err)
		}
	}
	if err := a.loadCounts(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir.Temp(), 0o700); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", dir, err)
	}
	if _, err := a.counts.Save(); err != nil {
		return nil, err
	}
	return accesslog.Open(dir.AccessLog())
}

// serve makes live what the feed wants until a stop was asked for and the
// drain is over, or until requests can't be counted any more. retry says when to try
// again what failed before.
func (a *Agent) serve(ctx, work context.Context, retry <-chan time.Time, failures, followed <-chan error) error {
	var (
		want    feed.Want
		cause   error
		drained <-chan time.Time
		stop    = ctx.Done()
		backoff = retryFirst
	)
	for {
		select {
		case want = <-a.Feed.Wants():
			backoff = retryFirst
			retry = a.attempt(work, want, backoff)
		case <-retry:
			backoff = min(2*backoff, retryMost)
			retry = a.again(work, want, backoff)
		case <-a.ended():
			retry = a.restart(work, backoff)
		case err := <-failures:
			cause, stop, drained = errors.Join(cause, err), nil, a.drain(err)
		case err := <-followed:
			cause, followed = errors.Join(cause, err), nil
			if !a.draining {
				return cause
			}
		case <-stop:
			stop, drained = nil, a.drain(nil)
		case <-drained:
			if drained = a.drainLonger(); drained == nil {
				return errors.Join(cause, a.quit(work))
			}
		}
	}
}

// ended is closed when nginx has ended by itself and is to be started again now. It is
// nil when that is tried anyway.
func (a *Agent) ended() <-chan struct{} {
	if a.renew {
		return nil
	}
	return a.server.Ended()
}

// again does what failed once more.
func (a *Agent) again(ctx context.Context, want feed.Want, backoff time.Duration) <-chan time.Time {
	if a.renew && len(want.Split.Ports) == 0 {
		return a.start(ctx, backoff)
	}
	return a.attempt(ctx, want, backoff)
}

// errClockSetBack is that nginx may remember for a long time what was in its tables.
var errClockSetBack = errors.New("the node's clock was set back while weights changed; another nginx will serve them")

// awaitForgotten waits until nginx has looked up anew all that it finds in its tables now,
// and then for some more time, by the clock that nginx goes by, which may be set. It fails
// when that was set back, or when the context ends.
func (a *Agent) awaitForgotten(ctx context.Context, more time.Duration) error {
	until := conf.LookupsForgotten(a.Clock.Now()).Add(more)
	for {
		left := until.Sub(a.Clock.Now())
		switch {
		case left <= 0:
			return nil
		case left > conf.LookupsKept+more:
			return errClockSetBack
		}
		select {
		case <-a.Clock.After(left):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// attempt makes a want live and reports. After an error the channel says when
// to try again.
func (a *Agent) attempt(ctx context.Context, want feed.Want, backoff time.Duration) <-chan time.Time {
	err := a.apply(ctx, want)
	if err == nil {
		a.report(traffic.Summary(want.Problems))
		return nil
	}
	if a.renew && a.tables == nil { // it is not live yet
		a.start(ctx, backoff) // which is tried again with the want
	}
	a.Log.Error(err, "The new configuration can't be served; the previous one stays live", "generation", want.Split.Generation, "served", a.generation)
	a.report(err.Error())
	return a.Clock.After(backoff)
}

// report says what is live.
func (a *Agent) report(message string) {
	served := confirmation.Served{Pod: a.Pod, Version: a.Version, Generation: a.generation, Configuration: a.configuration, Message: message}
	a.status.report(served)
	if a.Served != nil {
		a.Served(served)
	}
}

// apply makes a want live: only the table of weights when that is all that
// differs, else the configuration.
func (a *Agent) apply(ctx context.Context, want feed.Want) error {
	if len(want.Split.Ports) == 0 {
		return fmt.Errorf("nothing can be served: %s", traffic.Summary(want.Problems))
	}
	r, err := conf.Render(want.Split, a.Render)
	if err != nil {
		return err
	}
	if err := reach(ctx, a.Clock, a.Dial, newlyUsed(a.split, want.Split)); err != nil {
		return err
	}
	if err := a.counts.Know(types.NamespacedName{Namespace: want.Split.Namespace, Name: want.Split.Root}, r.Services); err != nil {
		return err
	}
	if err := a.udp.Open(r.Datagrams); err != nil {
		return err
	}
	if r.Key == a.rendering.Key && !a.renew {
		if err := a.reweigh(ctx, r.Table); err != nil {
			return err
		}
	} else if err := a.replace(ctx, r); err != nil {
		return err
	}
	if err := a.settle(want.Split, r); err != nil {
		return err
	}
	a.Log.Info("The configuration is live", "generation", a.generation, "configuration", r.Key)
	return nil
}

// reweigh makes a table of weights live.
func (a *Agent) reweigh(ctx context.Context, table conf.Table) error {
	if err := a.tables.Write(table); err != nil {
		return err
	}
	if len(table) > 0 {
		if err := a.awaitForgotten(ctx, 0); err != nil {
			a.renew = true // another nginx remembers nothing
			return err
		}
	}
	a.metrics.updates.Inc()
	return nil
}

// settle notes what is live now. What is not noted is not said to be served: after a crash,
// what is noted would be served in its place.
func (a *Agent) settle(split traffic.Split, r conf.Rendering) error {
	if err := a.udp.Open(r.Datagrams); err != nil {
		return err
	}
	a.udp.Serve(r.Datagrams)
	a.split, a.rendering, a.renew = split, r, false
	a.counts.Serve(r.Services)
	a.busy.capacity.Store(int64(r.Capacity.Requests))
	if !a.draining {
		a.status.setReady("")
	}
	if err := saveState(a.Render.Dir, state{Pod: a.Pod, Split: split, Instance: a.instance}); err != nil {
		return err
	}
	a.generation, a.configuration = split.Generation, split.Digest()
	a.metrics.serve(r.Services, a.generation)
	return nil
}
