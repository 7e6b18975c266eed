// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/sight"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/terminal"
)

// in is a scene in a state.
func in(reason string, conditions ...string) sight.Scene {
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
	return sight.Scene{Rollout: ro}
}

// follow follows scenes, one for each look, on a screen.
func follow(t *testing.T, g *getter, at beats, scenes ...sight.Scene) error {
	t.Helper()
	looks := 0
	return g.follow(t.Context(), func(context.Context) (sight.Scene, error) {
		looks++
		return scenes[min(looks, len(scenes))-1], nil
	}, at)
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
	g := &getter{cluster: &cluster{screen: terminal.NewScreen(tty)}, until: untilReady}
	err = follow(t, g, beats{look: ticks(3)}, in(v1alpha1.ReasonHolding), in(v1alpha1.ReasonHolding), in(v1alpha1.ReasonPromoting), in(v1alpha1.ReasonStable))
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
	g := &getter{cluster: &cluster{screen: terminal.NewScreen(&out)}, until: untilReady}
	if err := follow(t, g, beats{look: ticks(2)}, in(v1alpha1.ReasonHolding), in(v1alpha1.ReasonHolding), in(v1alpha1.ReasonStable)); err != nil {
		t.Fatal(err)
	}
	want := "website: Holding, step -, canary -: Holding now.\nwebsite: Stable, step -, canary -: Stable now.\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestFollowingEnds(t *testing.T) {
	over := make(chan time.Time, 1)
	over <- time.Time{}
	for _, test := range []struct {
		name, until string
		at          beats
		scene       sight.Scene
		status      int
	}{
		{"ready", untilReady, beats{}, in(v1alpha1.ReasonStable), exitDone},
		{"a rollback", untilReady, beats{}, in(v1alpha1.ReasonRolledBack, v1alpha1.ConditionStalled), exitMissed},
		{"the time is over", untilReady, beats{end: ticks(1)}, in(v1alpha1.ReasonHolding), exitMissed},
		{"the time is over and nothing was waited for", "", beats{end: over}, in(v1alpha1.ReasonHolding), exitDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &getter{cluster: &cluster{screen: terminal.NewScreen(io.Discard)}, until: test.until}
			if err := follow(t, g, test.at, test.scene); status(err) != test.status {
				t.Errorf("exit status %d: %v", status(err), err)
			}
		})
	}
}

func TestWhatCanNotBeReadEndsFollowing(t *testing.T) {
	gone := errors.New("gone")
	g := &getter{cluster: &cluster{screen: terminal.NewScreen(io.Discard)}}
	err := g.follow(t.Context(), func(context.Context) (sight.Scene, error) { return sight.Scene{}, gone }, beats{})
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestFlagsOfGet(t *testing.T) {
	for _, line := range []string{"--until=later", "--timeout=1m", "--watch -o json", "-o wide"} {
		var out bytes.Buffer
		if got := Run(t.Context(), append([]string{"rollout", "get", "website"}, strings.Fields(line)...), nil, &out, &out); got != exitUsage {
			t.Errorf("%s: exit status %d: %s", line, got, out.String())
		}
	}
}
