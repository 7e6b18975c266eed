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
	sink  sink
	// read and discarded are offsets in the file.
	read, discarded int64
	buffer          []byte
}

// sink is who reads the log.
type sink interface {
	// take takes the next bytes.
	take(chunk []byte)
	// save returns up to where the log will never be needed again, even if this
	// process is killed right now.
	save() (int64, error)
	// finish says that there will be no more bytes.
	finish() error
}

// openLog opens the access log, and creates it if there is none.
func openLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	// Past its end there is nothing to lose.
	if err := punchHole(file, 1<<40, pageBytes); err != nil {
		return nil, errors.Join(fmt.Errorf(
			"access log: the file system of %s can't give back what was read (%w); mount a memory volume (tmpfs) there", path, err), file.Close())
	}
	return file, nil
}

// newFollower reads a log on from an offset.
func newFollower(file *os.File, from int64, c clock.WithTicker, s sink) *follower {
	return &follower{
		file: file, clock: c, sink: s, read: from, discarded: from - from%pageBytes, buffer: make([]byte, 256<<10),
	}
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
			return errors.Join(f.catchUp(), f.sink.finish())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// catchUp reads what there is.
func (f *follower) catchUp() error {
	for {
		n, err := f.file.ReadAt(f.buffer, f.read)
		f.sink.take(f.buffer[:n])
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
	if f.read-f.discarded < discardBytes {
		return nil
	}
	saved, err := f.sink.save()
	if err != nil {
		return err
	}
	upTo := saved - saved%pageBytes
	if upTo <= f.discarded {
		return nil
	}
	if err := punchHole(f.file, f.discarded, upTo-f.discarded); err != nil {
		return fmt.Errorf("access log: give back what was read: %w", err)
	}
	f.discarded = upTo
	return nil
}
