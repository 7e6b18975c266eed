// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/utils/clock"
)

const (
	// followInterval is how often the access log is read. nginx writes it at least
	// every 200 ms.
	followInterval = 100 * time.Millisecond
	// discardBytes is how much of the access log is read before its memory is given
	// back, so what the log occupies stays below this plus what comes in a
	// followInterval.
	discardBytes = 1 << 20
	pageBytes    = 4096
)

// follower reads a growing file and gives the memory of what it has read back to
// the system: it punches holes. The file is never renamed or truncated, so nginx
// need not be told and no line can fall between two files.
type follower struct {
	file  *os.File
	clock clock.WithTicker
	lines *lines
	// read and discarded are offsets in the file.
	read, discarded int64
	buffer          []byte
}

// openLog creates the access log anew and opens it. What a former process left
// was counted by that process, or lost with it; counting it again would be wrong.
func openLog(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("access log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	if err := punchHole(file, 0, pageBytes); err != nil {
		return nil, errors.Join(fmt.Errorf(
			"access log: the file system of %s can't give back what was read (%w); mount a memory volume (tmpfs) there", path, err), file.Close())
	}
	return file, nil
}

func newFollower(file *os.File, c clock.WithTicker, l *lines) *follower {
	return &follower{file: file, clock: c, lines: l, buffer: make([]byte, 256<<10)}
}

// run reads until stop is closed, and then once more to the end: whoever closes
// it has stopped nginx, which wrote its last line before it ended.
func (f *follower) run(ctx context.Context, stop <-chan struct{}) error {
	ticker := f.clock.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			if err := f.catchUp(); err != nil {
				return err
			}
		case <-stop:
			err := f.catchUp()
			f.lines.finish()
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// catchUp reads what there is.
func (f *follower) catchUp() error {
	for {
		n, err := f.file.ReadAt(f.buffer, f.read)
		f.lines.add(f.buffer[:n])
		f.read += int64(n)
		if derr := f.discard(); derr != nil {
			return derr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("access log: %w", err)
		}
	}
}

// discard gives back the whole pages that were read, once they are many.
func (f *follower) discard() error {
	upTo := f.read - f.read%pageBytes
	if upTo-f.discarded < discardBytes {
		return nil
	}
	if err := punchHole(f.file, f.discarded, upTo-f.discarded); err != nil {
		return fmt.Errorf("access log: give back what was read: %w", err)
	}
	f.discarded = upTo
	return nil
}
