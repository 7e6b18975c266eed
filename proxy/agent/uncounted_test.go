// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// breakCounts makes it impossible to save counts until fix is called.
func breakCounts(t *testing.T, dir conf.Dir) (fix func()) {
	t.Helper()
	obstacle := dir.Counts() + ".next"
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(obstacle); err != nil {
			t.Fatal(err)
		}
	}
}

// fillLog writes so much into the access log that the counts have to be saved. What it
// writes counts as lines that no reader understands.
func fillLog(t *testing.T, dir conf.Dir) (lines int) {
	t.Helper()
	const line = "not a line of nginx\n"
	lines = accesslog.DiscardBytes/len(line) + 1
	log, err := os.OpenFile(dir.AccessLog(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.Write(bytes.Repeat([]byte(line), lines))
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestAnAgentThatCantCountEndsAndLeavesNginxToTheNext(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.wants <- wanted(1, 100, 0)
	s.report(t)
	s.server.taken()
	breakCounts(t, s.dir)
	fillLog(t, s.dir)
	start := s.clock.Now()
	s.passTimeUntil(t, "the agent ends", func() bool { return len(s.done) > 0 })
	if err := <-s.done; err == nil || !strings.Contains(err.Error(), "save the counts") {
		t.Errorf("the agent ended with %v, want the reason why nothing is counted", err)
	}
	s.done <- nil // for the cleanup
	if passed := s.clock.Since(start); passed >= s.agent.Drain {
		t.Errorf("the agent ended after %s, in which nothing was counted", passed)
	}
	if calls := s.server.taken(); calls != nil {
		t.Errorf("asked nginx %v: it should serve on", calls)
	}
}

func TestAnAgentThatCantCountWhileItDrainsDrainsToTheEnd(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.wants <- wanted(1, 100, 0)
	s.report(t)
	s.server.taken()
	start := s.clock.Now()
	s.stop()
	proxytest.Eventually(t, "the agent drains", func() bool { return s.readyz(t) == "draining" })
	breakCounts(t, s.dir)
	fillLog(t, s.dir)
	s.passTimeUntil(t, "the agent ends", func() bool { return len(s.done) > 0 })
	if err := <-s.done; err == nil || !strings.Contains(err.Error(), "save the counts") {
		t.Errorf("the agent ended with %v, want the reason why nothing was counted", err)
	}
	s.done <- nil // for the cleanup
	if passed := s.clock.Since(start); passed < s.agent.Drain {
		t.Errorf("the agent drained for %s, want %s", passed, s.agent.Drain)
	}
	if calls := s.server.taken(); !slices.Contains(calls, "stop") {
		t.Errorf("asked nginx %v, want it stopped", calls)
	}
}

// The supervisor starts agents until one of them can save counts again.
func TestNoRequestOrCountIsLostWhileNothingCanBeCounted(t *testing.T) {
	t.Parallel()
	c := startCrew(t)
	b := startBackend(t, "web", nil)
	c.serve(t, b.destination(100))
	finish, _ := startLoads(t, fmt.Sprintf("http://127.0.0.1:%d/", c.port), 2)
	fix := breakCounts(t, c.Render.Dir)
	if err := os.Remove(c.Reports); err != nil {
		t.Fatal(err)
	}
	lines := fillLog(t, c.Render.Dir)
	proxytest.Eventually(t, "an agent has ended", func() bool { return strings.Contains(c.logged(t), "the agent is started again") })
	fix()
	c.awaitGeneration(t)
	answered(t, finish())
	if err := c.stop(t); err != nil {
		t.Error(err)
	}
	saved := c.saved(t)
	if diff := cmp.Diff(answeredBy(b), requestsOf(saved)); diff != "" {
		t.Errorf("counts differ from what the backend answered (-want +got):\n%s", diff)
	}
	if n := dropped(saved); n != lines {
		t.Errorf("%d lines were dropped, want %d", n, lines)
	}
}
