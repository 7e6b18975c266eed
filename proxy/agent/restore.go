// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// This file is what outlives a container: its folder is a volume of the pod. Another container
// has other processes, so all that belonged to an nginx is made anew from what was noted.

// outlive keeps of what the previous container left what was live, and the counts with their
// log; it removes the rest. Without the first, nothing is of use.
func (a *Agent) outlive() error {
	dir := a.Render.Dir
	noted, err := loadState(dir, a.Pod)
	if err != nil {
		a.Log.Error(err, "Discarding what the previous container left")
	}
	if noted == nil {
		return empty(string(dir))
	}
	a.noted = noted
	// nginx removes the file when it ends in order, with all of its log written.
	_, err = os.Stat(dir.Instance(noted.Instance).PID())
	a.killed = err == nil
	return empty(string(dir), dir.State(), dir.Counts(), dir.AccessLog())
}

// loadCounts continues what was counted. Counts that the previous container left and that can't be
// read are discarded with their log: what is served matters more.
func (a *Agent) loadCounts() error {
	err := a.counts.Load()
	if err != nil && a.noted != nil {
		a.Log.Error(err, "Could not read the previous counts; counting starts at zero")
		return empty(string(a.Render.Dir), a.Render.Dir.State())
	}
	if err == nil && a.killed {
		a.counts.Killed(a.Render.Workers)
	}
	return err
}

// restore makes ready to serve what was live when the previous container ended. The sockets are
// opened at once, so that clients wait instead of being refused. The channel says when to
// start nginx if it is not known by then what is wanted.
func (a *Agent) restore() <-chan time.Time {
	if a.noted == nil {
		return nil
	}
	r, err := conf.Render(a.noted.Split, a.Render)
	if err == nil {
		_, err = a.sockets.Lend(r.Sockets)
	}
	if err == nil {
		err = a.udp.Open(r.Datagrams)
	}
	if err != nil {
		a.Log.Error(err, "Could not serve the configuration of the previous container")
		return nil
	}
	a.Log.Info("Serving the configuration of the previous container, unless the API names another first", "generation", a.noted.Split.Generation, "after", restoreAfter.String())
	a.split, a.rendering, a.renew = a.noted.Split, r, true
	return a.Clock.After(restoreAfter)
}

// empty removes everything in a folder but some files.
func empty(folder string, but ...string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if slices.Contains(but, path) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what a previous process left: %w", err)
		}
	}
	return nil
}
