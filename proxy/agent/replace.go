// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/serin-dev/serin/proxy/exposition"
	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/proxy/weights"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// This file is how one nginx takes the place of another: for another
// configuration, after nginx crashed, and after the agent crashed.
//
//	the previous one serves ──┬─> the new one serves as well ──> the previous one asks
//	                        │   clients to close ──> it finishes what it has
//	                        └─> the new one fails: nothing has happened

// replace makes a configuration live.
func (a *Agent) replace(ctx context.Context, r conf.Rendering) error {
	ctx, cancel := context.WithTimeout(ctx, a.ApplyTimeout+conf.LookupsKept+a.Settle)
	defer cancel()
	previous := a.tables
	if err := a.launch(ctx, r); err != nil {
		a.metrics.reloads.WithLabelValues(exposition.Failure).Inc()
		return errors.Join(err, a.sockets.CloseAllBut(a.rendering.Open()))
	}
	a.metrics.reloads.WithLabelValues(exposition.Success).Inc()
	if previous != nil {
		a.askToMove(ctx, previous)
	}
	if err := a.retireOthers(ctx, a.instance, r); err != nil {
		a.renew = true // two may serve
		return err
	}
	return nil
}

// retireOthers has every nginx but the one with a number end, once it serves.
func (a *Agent) retireOthers(ctx context.Context, number int, r conf.Rendering) error {
	if err := handOver(a.Render.Dir, number); err != nil {
		return err
	}
	if err := a.server.Retire(ctx); err != nil {
		return err
	}
	return a.sockets.CloseAllBut(r.Open())
}

// launch starts an nginx next to those that run.
func (a *Agent) launch(ctx context.Context, r conf.Rendering) error {
	a.instance++
	folder := a.Render.Dir.Instance(a.instance)
	tables, err := a.furnish(folder, r)
	if err == nil {
		var launch nginxproc.Launch
		if launch, err = a.lend(folder, r); err == nil {
			err = a.server.Start(ctx, launch)
		}
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(string(folder)))
	}
	if a.draining {
		err = tables.AskToClose()
	}
	a.tables = tables
	return err
}

// lend is a launch with the sockets of a configuration.
func (a *Agent) lend(folder conf.Instance, r conf.Rendering) (nginxproc.Launch, error) {
	fds, err := a.sockets.Lend(r.Sockets)
	return nginxproc.Launch{Folder: folder, Key: r.Key, Sockets: fds}, err
}

// furnish writes what an nginx needs into its folder.
func (a *Agent) furnish(folder conf.Instance, r conf.Rendering) (*weights.Tables, error) {
	if err := os.MkdirAll(string(folder), 0o700); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	tables, err := weights.New(folder)
	if err != nil {
		return nil, err
	}
	if err := tables.Write(r.Table); err != nil {
		return nil, err
	}
	if err := os.WriteFile(folder.Config(), r.Config, 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return tables, nil
}

// askToMove has a previous nginx ask clients to close their connections, for a
// while. It closes idle ones when it retires, and a request that arrives on one at
// that moment is lost.
func (a *Agent) askToMove(ctx context.Context, previous *weights.Tables) {
	if len(a.rendering.Table) == 0 || a.Settle <= 0 || a.draining {
		return
	}
	if err := previous.AskToClose(); err != nil {
		a.Log.Error(err, "Could not ask clients to reconnect")
		return
	}
	if err := a.awaitForgotten(ctx, a.Settle); err != nil {
		a.Log.Error(err, "Could not ask all clients to reconnect")
	}
}

// restart starts nginx again after its master has ended by itself. Workers that
// are left serve on until then, and no other process would end them. After an
// error the channel says when to try again.
func (a *Agent) restart(ctx context.Context, backoff time.Duration) <-chan time.Time {
	a.Log.Info("nginx ended by itself; starting another")
	a.metrics.restarts.Inc()
	return a.start(ctx, backoff)
}

// start starts an nginx with what is or was live. After an error the channel says when
// to try again.
func (a *Agent) start(ctx context.Context, backoff time.Duration) <-chan time.Time {
	a.renew = true
	if err := a.replace(ctx, a.rendering); err != nil {
		a.Log.Error(err, "Could not start nginx")
		return a.Clock.After(backoff)
	}
	if err := a.settle(a.split, a.rendering); err != nil {
		a.Log.Error(err, "Could not store which configuration is live")
	}
	if served := a.status.served.Load(); served.Configuration != a.configuration { // it was live in the previous container, or with the previous agent
		a.report(served.Message)
	}
	return nil
}

// resume continues with what another agent left. When no nginx serves it, the channel says when
// to start one; after other errors the next want is made live as if there were nothing yet.
func (a *Agent) resume(ctx context.Context) <-chan time.Time {
	if !a.sockets.Inherited() {
		return a.restore()
	}
	err := a.cutOver(ctx)
	if err == nil {
		return nil
	}
	a.Log.Error(err, "Could not adopt what another agent left")
	if !a.renew {
		return nil
	}
	return a.Clock.After(retryFirst)
}

// cutOver serves what was live with the other agent.
func (a *Agent) cutOver(ctx context.Context) error {
	noted, err := loadState(a.Render.Dir, a.Pod)
	if err != nil || noted == nil {
		return err
	}
	if a.instance, err = nginxproc.LastInstance(a.Render.Dir); err != nil {
		return err
	}
	r, err := conf.Render(noted.Split, a.Render)
	if err != nil {
		return err
	}
	if err := a.adopt(ctx, noted.Instance, r); err != nil {
		a.Log.Error(err, "The nginx that the previous agent left has ended; starting another")
		a.metrics.restarts.Inc()
		a.split, a.rendering, a.renew = noted.Split, r, true
		if err := a.replace(ctx, r); err != nil {
			return err
		}
	}
	if err := a.settle(noted.Split, r); err != nil {
		return err
	}
	a.report("")
	return nil
}

// adopt continues with an nginx with its tables, and has all others finish, as the
// other agent was about to do.
func (a *Agent) adopt(ctx context.Context, number int, r conf.Rendering) error {
	ctx, cancel := context.WithTimeout(ctx, a.ApplyTimeout)
	defer cancel()
	folder := a.Render.Dir.Instance(number)
	launch, err := a.lend(folder, r)
	if err != nil {
		return err
	}
	if a.tables, err = weights.Open(folder); err != nil {
		return err
	}
	if err := a.tables.Write(r.Table); err != nil { // which may have been on its way
		return err
	}
	if err := a.server.Adopt(ctx, launch); err != nil {
		return err
	}
	return a.retireOthers(ctx, number, r)
}
