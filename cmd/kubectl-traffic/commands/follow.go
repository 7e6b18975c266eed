// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

const (
	// lookTimeout bounds one look: a server that takes the request and says nothing
	// must not hide that nothing is seen any more.
	lookTimeout = 10 * time.Second
	// mostBeats are the most beats between two looks that fail.
	mostBeats = 16
)

// looker reads what is followed.
type looker func(context.Context) (rolloutview.Scene, error)

// follow shows the scene at each beat on which it has changed, until it is settled, if
// that is waited for, or the context is done. A look that fails in passing is done again,
// after more beats each time.
func (g *getter) follow(ctx context.Context, look looker, beats <-chan time.Time) error {
	shown, failed := picture{}, 0
	var scene rolloutview.Scene
	var last error
	for {
		seen, err := lookOnce(ctx, look)
		switch {
		case err == nil:
			scene, failed = seen, 0
		case outOfTime(ctx, err):
			<-ctx.Done()
			return g.over(ctx.Err(), last)
		case ctx.Err() != nil:
			return g.over(ctx.Err(), err)
		case !passing(err):
			return err
		default:
			failed++
		}
		last = err
		if now := g.picture(scene, err); now != shown {
			if err := g.cluster.screen.Show(now.body, now.foot); err != nil {
				return err
			}
			shown = now
		}
		if done, outcome := g.settled(scene.Rollout); done && err == nil {
			return outcome
		}
		if !await(ctx, beats, pauseAfter(failed)) {
			return g.over(ctx.Err(), err)
		}
	}
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

func lookOnce(ctx context.Context, look looker) (rolloutview.Scene, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return look(ctx)
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

// picture is what is shown of a scene.
type picture struct{ body, foot string }

// picture is the tree, or a line where the output is no terminal, with the error of the
// last look below it. A line that says nothing new is not written again for an error.
func (g *getter) picture(scene rolloutview.Scene, err error) picture {
	foot := ""
	if err != nil {
		foot = "It can't be read at present, and is tried again: " + strings.ReplaceAll(err.Error(), "\n", " ") + "\n"
	}
	switch {
	case g.cluster.screen.Terminal() && scene.Rollout != nil:
		return picture{rolloutview.Tree(scene), foot}
	case err != nil:
		return picture{foot: foot}
	}
	return picture{body: rolloutview.Line(scene.Rollout) + "\n"}
}

func (g *getter) settled(ro *v1alpha1.Rollout) (bool, error) {
	if g.until == "" || ro == nil {
		return false, nil
	}
	ready, failed := rolloutview.Settled(ro)
	if failed {
		return true, missedError{fmt.Errorf("the Rollout %s does not become ready by itself: %s", ro.Name, rolloutview.Sentence(ro))}
	}
	return ready, nil
}

// over is what the end means: an error where something was waited for. The last look may
// have failed.
func (g *getter) over(end, last error) error {
	if g.until == "" {
		return nil
	}
	why := "it was interrupted"
	if errors.Is(end, context.DeadlineExceeded) {
		why = "the time of " + g.timeout.String() + " is over"
	}
	if last != nil {
		return missedError{fmt.Errorf("whether the Rollout is %s is not known, and %s; it could not be read: %w", g.until, why, last)}
	}
	return missedError{fmt.Errorf("the Rollout is not %s yet, and %s", g.until, why)}
}
