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
	// LookTimeout bounds one look: a server that takes the request and says nothing
	// must not hide that nothing is seen any more.
	LookTimeout = 10 * time.Second
	// MostBeats are the most beats between two looks that fail.
	MostBeats = 16
)

// LookEvery is how often get --watch looks.
const LookEvery = time.Second

// OutOfTime is whether a look has failed for nothing but that the context is done, or is so
// soon that the client does not even ask: what was seen before is still true then.
func OutOfTime(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	}
	end, limited := ctx.Deadline()
	return limited && time.Until(end) < LookTimeout && strings.Contains(err.Error(), "would exceed context deadline") // golang.org/x/time/rate has no type for it
}

// PauseAfter is the number of beats to the next look after some that failed, one after
// the other: 1, 1, 2, 4 and so on up to MostBeats.
func PauseAfter(failed int) int {
	beats := 1
	for i := 1; i < failed && beats < MostBeats; i++ {
		beats *= 2
	}
	return beats
}

// Await waits for some beats; false if the context is done before.
func Await(ctx context.Context, beats <-chan time.Time, n int) bool {
	for range n {
		select {
		case <-ctx.Done():
			return false
		case <-beats:
		}
	}
	return true
}

// Passing is whether an error may be gone by itself: the server can't be reached, is too
// slow, is broken, or has too much to do.
func Passing(err error) bool {
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
