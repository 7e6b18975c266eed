// SPDX-License-Identifier: Apache-2.0

package accesslog

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
	// tailInterval is how often the access log is read; see flush.
	tailInterval = 100 * time.Millisecond
	// DiscardBytes is how much of the access log is read before its memory is
	// freed, so what the log occupies stays below this plus what comes in a
	// tailInterval.
	DiscardBytes = 1 << 20
	pageBytes    = 4096
)

// Tailer reads a growing file and gives the memory of what it has read back to
// the system: it punches holes. The file is never renamed or truncated, so nginx
// need not be told and no line can fall between two files.
type Tailer struct {
	file  *os.File
	clock clock.WithTicker
	sink  Sink
	// read and discarded are offsets in the file.
	read, discarded int64
	buffer          []byte
}

// Sink is who reads the log.
type Sink interface {
	// Take takes the next bytes.
	Take(chunk []byte)
	// Save returns up to where the log will never be needed again, even if this
	// process is killed right now.
	Save() (int64, error)
	// Finish says that there will be no more bytes.
	Finish() error
}

// Open opens the access log, and creates it if there is none.
func Open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	// Past its end there is nothing to lose.
	if err := punchHole(file, 1<<40, pageBytes); err != nil {
		return nil, errors.Join(fmt.Errorf(
			"access log: the file system of %s can't free what was read (%w); mount a memory volume (tmpfs) there", path, err), file.Close())
	}
	return file, nil
}

// NewTailer reads a log on from an offset.
func NewTailer(file *os.File, from int64, c clock.WithTicker, s Sink) *Tailer {
	return &Tailer{
		file: file, clock: c, sink: s, read: from, discarded: from - from%pageBytes, buffer: make([]byte, 256<<10),
	}
}

// Run reads until stop is closed, and then once more to the end: the caller closes
// it once it has stopped nginx, which wrote its last line before it ended.
func (t *Tailer) Run(ctx context.Context, stop <-chan struct{}) error {
	ticker := t.clock.NewTicker(tailInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			if err := t.CatchUp(); err != nil {
				return err
			}
		case <-stop:
			return errors.Join(t.CatchUp(), t.sink.Finish())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CatchUp reads what there is.
func (t *Tailer) CatchUp() error {
	for {
		n, err := t.file.ReadAt(t.buffer, t.read)
		t.sink.Take(t.buffer[:n])
		t.read += int64(n)
		if derr := t.discard(); derr != nil {
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

// discard frees the whole pages that were read, once they are many.
func (t *Tailer) discard() error {
	if t.read-t.discarded < DiscardBytes {
		return nil
	}
	saved, err := t.sink.Save()
	if err != nil {
		return err
	}
	upTo := saved - saved%pageBytes
	if upTo <= t.discarded {
		return nil
	}
	if err := punchHole(t.file, t.discarded, upTo-t.discarded); err != nil {
		return fmt.Errorf("access log: free what was read: %w", err)
	}
	t.discarded = upTo
	return nil
}
