// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// This file is how a proxy leaves.
//
//	stop ──> not ready, and answers ask clients to close ──> Drain has passed, and
//	no client has come for a while ──> no new connections ──> requests finish ──> the end
//
// A node may learn late that a pod is leaving, the later the busier it is. A client that
// connects after nginx has stopped is lost, so nginx stops when clients do.

// quietTime is how long no client may have come before a proxy that drains stops.
const quietTime = 3 * time.Second

// drain begins to leave: not ready any more, and clients who are here are asked to move on. The
// channel says when it has lasted for Drain.
func (a *Agent) drain(cause error) <-chan time.Time {
	a.Log.Info("Stopping: clients are asked to reconnect to other proxies", "duration", a.Drain.String(), "cause", cause)
	a.draining = true
	a.status.setReady("draining")
	if a.tables == nil {
		return a.Clock.After(0)
	}
	if err := a.tables.AskToClose(); err != nil {
		a.Log.Error(err, "Could not ask clients to reconnect")
	}
	now := a.Clock.Now()
	a.drainEnds = now.Add(a.DrainLimit)
	return a.Clock.After(conf.LookupsForgotten(now).Add(a.Drain).Sub(now))
}

// drainLonger says when to ask again whether clients still come; nil when they don't, or when
// they have come for DrainLimit.
func (a *Agent) drainLonger() <-chan time.Time {
	if a.busy.quiet.lasted() >= quietTime || !a.Clock.Now().Before(a.drainEnds) {
		return nil
	}
	return a.Clock.After(busyEvery)
}

// quit takes no new connections, and lets requests finish. A connection that comes now is
// refused, so that its client tries another pod, and does not wait for an answer in vain.
func (a *Agent) quit(ctx context.Context) error {
	var errs []error
	for _, socket := range a.rendering.Sockets {
		errs = append(errs, a.sockets.Close(socket))
	}
	ctx, cancel := context.WithTimeout(ctx, a.QuitTimeout)
	defer cancel()
	return errors.Join(append(errs, a.server.Stop(ctx))...)
}

// quiet is the time in which no client came, as far as that was seen.
type quiet struct {
	mu sync.Mutex
	// begun and seen are the times of the first and the last count between which no client came;
	// begun is zero when the last count failed.
	begun, seen time.Time
	accepted    int64
	datagrams   int64
}

// note adds a count of the connections that nginx has accepted, with the one that asked for
// the count, and of the datagrams that have come. Counts of another nginx begin anew, and are
// taken for clients.
func (q *quiet) note(accepted, datagrams int64, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.begun.IsZero() || accepted != q.accepted+1 || datagrams != q.datagrams {
		q.begun = now
	}
	q.seen, q.accepted, q.datagrams = now, accepted, datagrams
}

// interrupt is a count that failed: clients may have come.
func (q *quiet) interrupt(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun, q.seen = time.Time{}, now
}

// lasted is for how long no client has come.
func (q *quiet) lasted() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.begun.IsZero() {
		return 0
	}
	return q.seen.Sub(q.begun)
}
