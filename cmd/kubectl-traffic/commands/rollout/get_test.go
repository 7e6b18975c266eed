// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/terminal"
)

// in is a snapshot in a state.
func in(reason string, conditions ...string) rolloutview.Snapshot {
	ro := &v1alpha1.Rollout{}
	ro.Name = "website"
	ready := metav1.ConditionFalse
	if reason == v1alpha1.ReasonStable {
		ready = metav1.ConditionTrue
	}
	ro.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready, Reason: reason, Message: reason + " now."}}
	for _, c := range conditions {
		ro.Status.Conditions = append(ro.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
	}
	return rolloutview.Snapshot{Rollout: ro}
}

// look is what one look sees.
type look struct {
	snapshot rolloutview.Snapshot
	err      error
}

// saw are looks that succeed.
func saw(snapshots ...rolloutview.Snapshot) []look {
	var looks []look
	for _, s := range snapshots {
		looks = append(looks, look{snapshot: s})
	}
	return looks
}

// follow follows looks, the last of them again and again.
func follow(ctx context.Context, g *getter, beats <-chan time.Time, looks []look) error {
	at := 0
	return g.watcher(func(context.Context) (rolloutview.Snapshot, error) {
		at++
		now := looks[min(at, len(looks))-1]
		return now.snapshot, now.err
	}).Run(ctx, 0, beats)
}

// ticks has a beat for each of n looks.
func ticks(n int) <-chan time.Time {
	c := make(chan time.Time, n)
	for range n {
		c <- time.Time{}
	}
	return c
}

func TestOnATerminalTheTreeIsDrawnInItsPlace(t *testing.T) {
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 20, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	g := &getter{cluster: &cli.Cluster{Screen: terminal.NewScreen(tty)}, until: untilReady}
	err = follow(t.Context(), g, ticks(3), saw(in(v1alpha1.ReasonHolding), in(v1alpha1.ReasonHolding), in(v1alpha1.ReasonPromoting), in(v1alpha1.ReasonStable)))
	if err != nil {
		t.Fatal(err)
	}
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	_, _ = io.Copy(&shown, master) // ends with an error when the other end is closed
	pictures := regexp.MustCompile(`\x1b\[4A\r+\x1b\[J`).Split(shown.String(), -1)
	if len(pictures) != 3 {
		t.Fatalf("%d pictures: %q", len(pictures), shown.String())
	}
	for i, reason := range []string{v1alpha1.ReasonHolding, v1alpha1.ReasonPromoting, v1alpha1.ReasonStable} {
		if !strings.Contains(pictures[i], "Status:    "+reason+" now.") {
			t.Errorf("picture %d: %q", i, pictures[i])
		}
	}
}

func TestElsewhereALineIsWrittenForEachChange(t *testing.T) {
	var out bytes.Buffer
	g := &getter{cluster: &cli.Cluster{Screen: terminal.NewScreen(&out)}, until: untilReady}
	if err := follow(t.Context(), g, ticks(2), saw(in(v1alpha1.ReasonHolding), in(v1alpha1.ReasonHolding), in(v1alpha1.ReasonStable))); err != nil {
		t.Fatal(err)
	}
	want := "website: Holding, step -, canary -: Holding now.\nwebsite: Stable, step -, canary -: Stable now.\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestFollowingEnds(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, test := range []struct {
		name, until string
		ctx         context.Context
		look        look
		status      int
		says        string
	}{
		{"ready", untilReady, t.Context(), look{snapshot: in(v1alpha1.ReasonStable)}, cli.ExitDone, ""},
		{"a rollback", untilReady, t.Context(), look{snapshot: in(v1alpha1.ReasonRolledBack, v1alpha1.ConditionStalled)}, cli.ExitMissed, "does not become ready by itself"},
		{"the time is over", untilReady, over, look{snapshot: in(v1alpha1.ReasonHolding)}, cli.ExitMissed, "the Rollout is not ready yet, and the time limit of 1m0s has passed"},
		{"interrupted", untilReady, interrupted, look{snapshot: in(v1alpha1.ReasonHolding)}, cli.ExitMissed, "it was interrupted"},
		{"the time is over and nothing was waited for", "", over, look{snapshot: in(v1alpha1.ReasonHolding)}, cli.ExitDone, ""},
		{"the time is over while it can't be read", untilReady, over, look{err: syscall.ECONNREFUSED}, cli.ExitMissed, "whether the Rollout is ready is not known"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &getter{cluster: &cli.Cluster{Screen: terminal.NewScreen(io.Discard)}, until: test.until, timeout: time.Minute}
			err := follow(test.ctx, g, nil, []look{test.look})
			if cli.Status(err) != test.status || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("exit status %d: %v", cli.Status(err), err)
			}
		})
	}
}

func TestFollowingGoesOnOverErrorsThatPass(t *testing.T) {
	resource := schema.GroupResource{Group: "serin.dev", Resource: "rollouts"}
	dial := &url.Error{Op: "Get", URL: "https://cluster", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	for _, test := range []struct {
		name   string
		err    error
		passes bool
	}{
		{"connection refused", dial, true},
		{"connection reset", &url.Error{Op: "Get", URL: "https://cluster", Err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}, true},
		{"the connection ended", &url.Error{Op: "Get", URL: "https://cluster", Err: io.EOF}, true},
		{"too slow", &url.Error{Op: "Get", URL: "https://cluster", Err: context.DeadlineExceeded}, true},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), true},
		{"internal error", apierrors.NewInternalError(errors.New("etcd")), true},
		{"unavailable", apierrors.NewServiceUnavailable("starting"), true},
		{"server timeout", apierrors.NewServerTimeout(resource, "get", 1), true},
		{"timeout", apierrors.NewTimeoutError("slow", 1), true},
		{"a wrapped one", fmt.Errorf("list pods: %w", apierrors.NewServiceUnavailable("starting")), true},
		{"not found", apierrors.NewNotFound(resource, "website"), false},
		{"forbidden", apierrors.NewForbidden(resource, "website", errors.New("no")), false},
		{"unauthorized", apierrors.NewUnauthorized("expired"), false},
		{"TLS", &url.Error{Op: "Get", URL: "https://cluster", Err: &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}}, false},
		{"an unknown authority", &url.Error{Op: "Get", URL: "https://cluster", Err: x509.UnknownAuthorityError{}}, false},
		{"anything else", errors.New("odd"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			g := &getter{cluster: &cli.Cluster{Screen: terminal.NewScreen(&out)}, until: untilReady}
			holding := look{snapshot: in(v1alpha1.ReasonHolding)}
			err := follow(t.Context(), g, ticks(20), []look{holding, {err: test.err}, {err: test.err}, {err: test.err}, holding, {snapshot: in(v1alpha1.ReasonStable)}})
			if !test.passes {
				if !errors.Is(err, test.err) || cli.Status(err) != cli.ExitError {
					t.Errorf("exit status %d: %v", cli.Status(err), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := []string{
				"website: Holding, step -, canary -: Holding now.", "It can't be read at present, and is tried again: " + test.err.Error(),
				"website: Holding, step -, canary -: Holding now.", "website: Stable, step -, canary -: Stable now.", "",
			}
			if diff := cmp.Diff(want, strings.Split(out.String(), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The client's own limit of requests refuses to wait beyond the end of the time.
func TestALookThatTheEndCutsOffIsNoErrorOfItsOwn(t *testing.T) {
	limit := errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline")
	g := &getter{cluster: &cli.Cluster{Screen: terminal.NewScreen(io.Discard)}, until: untilReady, timeout: time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := follow(ctx, g, ticks(1), []look{{snapshot: in(v1alpha1.ReasonHolding)}, {err: limit}})
	if cli.Status(err) != cli.ExitMissed || !strings.Contains(err.Error(), "the Rollout is not ready yet, and the time limit of 1s has passed") {
		t.Errorf("%v", err)
	}
}
