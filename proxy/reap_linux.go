// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
)

// Reap collects the processes that the kernel hands to process 1 of a container
// because their parents have ended, until the context ends. Those come from
// commands that somebody ran in the container, in sessions of their own. The
// agent's own children share its session and are left to it.
func Reap(ctx context.Context, log logr.Logger) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-ended:
			if err := reapOrphans(); err != nil {
				log.Error(err, "Orphaned processes are not collected")
			}
		case <-ctx.Done():
			return
		}
	}
}

// reapOrphans collects every ended child of another session.
func reapOrphans() error {
	self := os.Getpid()
	session, err := unix.Getsid(self)
	if err != nil {
		return err
	}
	folders, err := os.ReadDir(procDir)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		pid, err := strconv.Atoi(folder.Name())
		if err != nil {
			continue
		}
		data, err := readProc(filepath.Join(procDir, folder.Name(), "stat"))
		if err != nil {
			return err
		}
		if stat := parseStat(data); !stat.zombie || stat.parent != self || stat.session == session {
			continue
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil && err != unix.EINTR {
			return err
		}
	}
	return nil
}
