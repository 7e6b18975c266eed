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
func Lock(ctx context.Context, path string, waiting func()) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the lock file: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	told := false
	err = wait.PollUntilContextCancel(ctx, lockPoll, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err == nil, err
		}
		if !told && waiting != nil {
			waiting()
		}
		told = true
		return false, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	// Closing the only descriptor releases the lock; nothing can be done about
	// a failure, and the end of the process closes it all the same.
	return func() { _ = file.Close() }, nil
}
