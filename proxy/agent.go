// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/controllers/traffic"
	"github.com/serin-dev/serin/controllers/traffic/nginx"
)

const (
	// retryFirst and retryMost are how long to wait before a configuration that
	// failed is tried again.
	retryFirst = 2 * time.Second
	retryMost  = time.Minute
	// scrapeTimeout is how long the last counts wait to be fetched at the end.
	scrapeTimeout = 6 * time.Second
)

// errNginxEnded is the error of nginx ending without being told to.
var errNginxEnded = errors.New("nginx ended unexpectedly")

// Options are what an Agent needs.
type Options struct {
	// Render are the facts of the pod that nginx runs in.
	Render nginx.RenderOptions
	// Server is nginx, not started.
	Server Server
	// Feed says what to serve.
	Feed Feed
	// Listener of the probes and metrics.
	Listener net.Listener
	// Drain is how long requests are still served after a stop was asked for, until
	// everybody knows that this pod is leaving.
	Drain time.Duration
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
	// Clock that everything waits by.
	Clock clock.WithTicker
	// Log of the agent.
	Log logr.Logger
}

// Agent runs nginx for one TrafficSplit.
type Agent struct {
	Options
	metrics *metrics
	status  *statusServer
	tables  *tables

	// The rest belongs to the goroutine of Run.

	// split in effect.
	split traffic.Split
	// rendering in effect; its key is "" before nginx serves for the first time.
	rendering nginx.Rendering
	// generation in effect, and the digest of split.
	generation    int64
	configuration string
	draining      bool
}

// New makes an Agent.
func New(opts Options) *Agent {
	if opts.Dial == nil {
		opts.Dial = (&net.Dialer{}).DialContext
	}
	m := newMetrics(opts.Clock)
	return &Agent{Options: opts, metrics: m, status: newStatusServer(m), tables: newTables(opts.Render.Dir)}
}

// Run serves until the context ends, and then drains and stops nginx. It returns
// an error when nginx ended by itself or requests had to be cut off.
func (a *Agent) Run(ctx context.Context) error {
	log, err := a.prepare()
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // only read
	// The work goes on while draining, after the caller's context has ended.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	failures := make(chan error, 2)
	go func() { failures <- a.status.run(work, a.Listener) }()
	go func() { failures <- a.Feed.Run(work) }()

	finish, followed := make(chan struct{}), make(chan error, 1)
	l := &lines{line: a.metrics.count, dropped: a.metrics.dropped.Inc}
	go func() { followed <- newFollower(log, a.Clock, l).run(work, finish) }()

	err = a.serve(ctx, work, failures, followed)
	close(finish)
	err = errors.Join(err, <-followed)
	a.status.awaitScrape(a.Clock.After(scrapeTimeout))
	return err
}

// prepare empties the folder of what a former process left, and makes what nginx
// and the agent need.
func (a *Agent) prepare() (*os.File, error) {
	dir := a.Render.Dir
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", dir, err)
	}
	if err := removeAllBut(string(dir)); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir.Temp(), 0o700); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", dir, err)
	}
	return openLog(dir.AccessLog())
}

// serve puts in effect what the feed wants until a stop was asked for and the
// drain is over.
func (a *Agent) serve(ctx, work context.Context, failures <-chan error, followed chan error) error {
	var (
		want           Want
		cause          error
		retry, drained <-chan time.Time
		stop           = ctx.Done()
		backoff        = retryFirst
	)
	for {
		select {
		case want = <-a.Feed.Wants():
			backoff = retryFirst
			retry = a.attempt(work, want, backoff)
		case <-retry:
			backoff = min(2*backoff, retryMost)
			retry = a.attempt(work, want, backoff)
		case <-a.Server.Ended():
			a.status.setReady(errNginxEnded.Error())
			return errors.Join(cause, errNginxEnded)
		case err := <-failures:
			cause, stop, drained = errors.Join(cause, err), nil, a.drain(err)
		case err := <-followed:
			followed <- nil
			cause, stop, drained = errors.Join(cause, err), nil, a.drain(err)
		case <-stop:
			stop, drained = nil, a.drain(nil)
		case <-drained:
			return errors.Join(cause, a.quit(work))
		}
	}
}

// drain begins to leave: no new clients, and those who are here are asked to
// move on. The channel says when it has lasted long enough.
func (a *Agent) drain(cause error) <-chan time.Time {
	a.Log.Info("Draining", "duration", a.Drain.String(), "cause", cause)
	a.draining = true
	a.status.setReady("draining")
	if a.rendering.Key == "" {
		return a.Clock.After(0)
	}
	if err := a.askToClose(); err != nil {
		a.Log.Error(err, "Clients are not asked to move on")
	}
	return a.Clock.After(a.Drain)
}

func (a *Agent) quit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.QuitTimeout)
	defer cancel()
	return a.Server.Stop(ctx)
}

// attempt puts a want in effect and reports. After an error the channel says when
// to try again.
func (a *Agent) attempt(ctx context.Context, want Want, backoff time.Duration) <-chan time.Time {
	err := a.apply(ctx, want)
	if err == nil {
		// What is missing is said too: the controller takes a proxy for one that serves
		// the generation only if it sees the same Services as the controller does.
		a.report(traffic.Summary(want.Problems))
		return nil
	}
	a.Log.Error(err, "The former configuration stays in effect", "generation", want.Split.Generation, "served", a.generation)
	a.report(err.Error())
	return a.Clock.After(backoff)
}

// report says what is in effect.
func (a *Agent) report(message string) {
	a.Feed.Report(Served{Generation: a.generation, Configuration: a.configuration, Message: message})
}

// apply puts a want in effect: only the table of weights when that is all that
// differs, else the configuration.
func (a *Agent) apply(ctx context.Context, want Want) error {
	if len(want.Split.Ports) == 0 {
		return fmt.Errorf("nothing can be served: %s", traffic.Summary(want.Problems))
	}
	r, err := nginx.Render(want.Split, a.Render)
	if err != nil {
		return err
	}
	if err := reach(ctx, a.Clock, a.Dial, newlyUsed(a.split, want.Split)); err != nil {
		return err
	}
	a.metrics.know(r.Services)
	if err := a.tables.write(r); err != nil {
		return err
	}
	if r.Key == a.rendering.Key {
		a.metrics.updates.WithLabelValues().Inc()
	} else if err := a.configure(ctx, r); err != nil {
		a.metrics.reloads.WithLabelValues(resultFailure).Inc()
		return err
	} else {
		a.metrics.reloads.WithLabelValues(resultSuccess).Inc()
	}
	a.split, a.rendering, a.generation, a.configuration = want.Split, r, want.Split.Generation, want.Split.Digest()
	a.metrics.inEffect(r.Services, a.generation)
	if !a.draining {
		a.status.setReady("")
	}
	a.Log.Info("In effect", "generation", a.generation, "configuration", r.Key)
	return nil
}

// configure makes nginx serve a configuration. When it can't, the former one is
// put back.
func (a *Agent) configure(ctx context.Context, r nginx.Rendering) error {
	ctx, cancel := context.WithTimeout(ctx, a.ApplyTimeout+a.Settle)
	defer cancel()
	dir := a.Render.Dir
	if err := os.WriteFile(dir.Candidate(), r.Config, 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := a.Server.Test(ctx, dir.Candidate()); err != nil {
		return err
	}
	if err := os.Rename(dir.Candidate(), dir.Config()); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	former := a.rendering
	if former.Key == "" {
		return a.Server.Start(ctx, r.Key)
	}
	err := a.reload(ctx, r.Key)
	if err != nil {
		return errors.Join(err, os.WriteFile(dir.Config(), former.Config, 0o600))
	}
	// Workers of the former configuration may still have requests to look up.
	return a.tables.keepOnly(filepath.Base(dir.Tables(former.Key)), filepath.Base(dir.Tables(r.Key)))
}

// reload makes nginx take the configuration over. nginx closes idle client
// connections then, and a request that arrives on one at that moment is lost. So
// for a while before, answers ask clients to close.
func (a *Agent) reload(ctx context.Context, key string) error {
	if len(a.rendering.Table) > 0 && a.Settle > 0 && !a.draining {
		if err := a.askToClose(); err != nil {
			return err
		}
		select {
		case <-a.Clock.After(a.Settle):
		case <-ctx.Done():
		}
	}
	err := a.Server.Reload(ctx, key)
	if a.draining {
		return err
	}
	if rerr := os.Remove(a.Render.Dir.Closing()); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		return errors.Join(err, rerr)
	}
	return err
}

// askToClose makes every answer end its connection.
func (a *Agent) askToClose() error {
	if err := os.WriteFile(a.Render.Dir.Closing(), nil, 0o600); err != nil {
		return fmt.Errorf("ask clients to close: %w", err)
	}
	return nil
}
