// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// lookTimeout bounds one look: a server that takes the request and says nothing
	// must not hide that nothing is seen any more.
	lookTimeout = 10 * time.Second
	// mostBeats are the most beats between two looks that fail.
	mostBeats = 16
)

// lookEvery is how long one beat is.
const lookEvery = time.Second

// Watch says how something is watched.
type Watch struct {
	// Look looks once.
	Look func(ctx context.Context) error
	// Show shows what was seen, or that the look failed, and reports whether there is
	// nothing left to wait for.
	Show func(failed error) (over bool, err error)
	// End is what it means that the time is over, or the command was interrupted. The last
	// look may have failed.
	End func(end, last error) error
}

// Ended says why a wait ended with nothing left to look at: its time is over, or the command
// was interrupted.
func Ended(end error, limit time.Duration) string {
	if errors.Is(end, context.DeadlineExceeded) {
		return "the time limit of " + limit.String() + " has passed"
	}
	return "it was interrupted"
}

// Wait looks at something at once, and then once a second, for at most a limit if there is one.
func Wait(ctx context.Context, limit time.Duration, w Watch) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	return w.Run(ctx, limit, ticker.C)
}

// Run looks at each beat until nothing is left to wait for, the limit is reached if there is
// one, or the context is done. A look that fails in passing is done again, after more beats
// each time. The first look is not cut off by the limit, so that a command with a short one
// says what there is, as kubectl wait does.
func (f Watch) Run(ctx context.Context, limit time.Duration, beats <-chan time.Time) error {
	limited, cancel := limitedTo(ctx, limit)
	defer cancel()
	failed := 0
	var last error
	for ; ; ctx = limited {
		err := f.look(ctx)
		_, missed := errors.AsType[MissedError](err)
		switch {
		case err == nil:
			failed = 0
		case missed:
			return err
		case outOfTime(ctx, err):
			<-ctx.Done()
			return f.End(ctx.Err(), last)
		case ctx.Err() != nil:
			return f.End(ctx.Err(), err)
		case !passing(err):
			return err
		default:
			failed++
		}
		last = err
		if over, err := f.Show(err); over || err != nil {
			return err
		}
		if !await(limited, beats, pauseAfter(failed)) {
			return f.End(limited.Err(), err)
		}
	}
}

func limitedTo(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit > 0 {
		return context.WithTimeout(ctx, limit)
	}
	return context.WithCancel(ctx)
}

func (f Watch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return f.Look(ctx)
}

// outOfTime is whether a look has failed for nothing but that the context is done, or is so
// soon that the client does not even ask: what was seen before is still true then.
func outOfTime(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	}
	end, limited := ctx.Deadline()
	return limited && time.Until(end) < lookTimeout && strings.Contains(err.Error(), "would exceed context deadline") // golang.org/x/time/rate has no type for it
}

// pauseAfter is the number of beats to the next look after some that failed, one after
// the other: 1, 1, 2, 4 and so on up to mostBeats.
func pauseAfter(failed int) int {
	beats := 1
	for i := 1; i < failed && beats < mostBeats; i++ {
		beats *= 2
	}
	return beats
}

// await waits for some beats; false if the context is done before.
func await(ctx context.Context, beats <-chan time.Time, n int) bool {
	for range n {
		select {
		case <-ctx.Done():
			return false
		case <-beats:
		}
	}
	return true
}

// passing is whether an error may be gone by itself: the server can't be reached, is too
// slow, is broken, or has too much to do.
func passing(err error) bool {
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
		code := s.ErrStatus.Code
		return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= http.StatusInternalServerError
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return slices.Contains([]string{"dial", "read", "write"}, op.Op) // others are refusals of TLS
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsTimeout(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err)
}
