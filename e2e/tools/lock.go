// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 200 * time.Millisecond

// Lock takes the lock file at path, exclusively among processes, and returns how
// to release it. The kernel releases the lock of a process that dies. When
// another process holds it, waiting is called once before Lock waits.
//
// The holder may remove the file.
func Lock(ctx context.Context, path string, waiting func()) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of the lock file: %w", err)
	}
	told := false
	err = wait.PollUntilContextCancel(ctx, lockPoll, true, func(context.Context) (bool, error) {
		release, err = tryLock(path)
		if err == nil && release == nil && !told && waiting != nil {
			told = true
			waiting()
		}
		return release != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return release, nil
}

// tryLock returns nil when another process holds the lock.
func tryLock(path string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// Closing the only descriptor releases the lock; nothing can be done about
	// a failure, and the end of the process closes it all the same.
	release = func() { _ = file.Close() }
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && isAt(file, path) {
		return release, nil
	}
	release()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

// isAt tells whether the file still has that path. The one that was locked may
// have been removed by its former holder, and another process have locked a new one.
func isAt(file *os.File, path string) bool {
	locked, err := file.Stat()
	if err != nil {
		return false
	}
	present, err := os.Stat(path)
	return err == nil && os.SameFile(locked, present)
}
