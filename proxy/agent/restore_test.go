// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/proxy/counts"
	"github.com/serin-dev/serin/proxy/exposition"
	"github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// leave writes files of a previous container.
func leave(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// leaveState notes that a split was live in the previous container.
func leaveState(t *testing.T, want feed.Want) func(*Options) {
	t.Helper()
	return func(o *Options) {
		if err := saveState(o.Render.Dir, state{Pod: o.Pod, Split: want.Split, Instance: 7}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnotherContainerServesWhatWasLiveWhileTheAPIIsAway(t *testing.T) {
	t.Parallel()
	previous := wanted(3, 90, 10)
	opened := make(chan struct{}, 10)
	s := newFixture(t, leaveState(t, previous), func(o *Options) {
		listen := o.Listen
		o.Listen = func(socket conf.Socket) (int, error) {
			opened <- struct{}{}
			return listen(socket)
		}
	})
	proxytest.Eventually(t, "the sockets are open, before nginx runs", func() bool { return len(opened) > 0 })
	start := s.clock.Now()
	if got := s.readyz(t); got != "starting" {
		t.Errorf("ready before anything is served: %q", got)
	}
	if diff := cmp.Diff(served(previous), s.report(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if passed := s.clock.Since(start); passed < restoreAfter {
		t.Errorf("it waited %s for what is wanted", passed)
	}
	if got := s.readyz(t); got != "ok" {
		t.Errorf("not ready: %s", got)
	}
	if diff := cmp.Diff([]string{"start", "retire"}, s.server.taken()); diff != "" {
		t.Errorf("asked nginx (-want +got):\n%s", diff)
	}
	s.wants <- wanted(4, 50, 50)
	if diff := cmp.Diff(served(wanted(4, 50, 50)), s.report(t)); diff != "" {
		t.Errorf("once the API is back (-want +got):\n%s", diff)
	}
	if calls := s.server.taken(); calls != nil {
		t.Errorf("asked nginx %v for weights", calls)
	}
}

// The weights may have changed while the container was away.
func TestAnotherContainerServesWhatIsWantedWhenItIsKnown(t *testing.T) {
	t.Parallel()
	s := newFixture(t, leaveState(t, wanted(3, 50, 50)))
	s.wants <- wanted(4, 100, 0)
	if diff := cmp.Diff(served(wanted(4, 100, 0)), s.reportAtOnce(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	s.clock.Step(2 * restoreAfter)
	s.wants <- wanted(5, 95, 5)
	if diff := cmp.Diff(served(wanted(5, 95, 5)), s.report(t)); diff != "" {
		t.Errorf("second report (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"start", "retire"}, s.server.taken()); diff != "" {
		t.Errorf("asked nginx (-want +got):\n%s", diff)
	}
}

func TestWhatWasLiveStaysLiveInAnotherContainerWhenWhatIsWantedFails(t *testing.T) {
	t.Parallel()
	for name, failed := range map[string]struct {
		start   error
		want    feed.Want
		message string
	}{
		"nginx refuses it":  {errors.New("invalid port"), wanted(4, 100), "invalid port"},
		"nothing is wanted": {nil, feed.Want{}, "nothing can be served: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			previous := wanted(3, 90, 10)
			s := newFixture(t, leaveState(t, previous))
			if failed.start != nil {
				s.server.failNext("start", failed.start)
			}
			s.wants <- failed.want
			want := served(previous)
			if diff := cmp.Diff(want, s.reportAtOnce(t)); diff != "" {
				t.Errorf("first report (-want +got):\n%s", diff)
			}
			want.Message = failed.message
			if diff := cmp.Diff(want, s.reportAtOnce(t)); diff != "" {
				t.Errorf("second report (-want +got):\n%s", diff)
			}
			if got := s.readyz(t); got != "ok" {
				t.Errorf("not ready: %s", got)
			}
		})
	}
}

func TestAnotherContainerTriesAgainWhatWasLive(t *testing.T) {
	t.Parallel()
	previous := wanted(3, 90, 10)
	server := &fakeServer{fail: map[string]error{"start": errors.New("no memory")}}
	s := newFixture(t, leaveState(t, previous), func(o *Options) { o.Server = func(func(int)) (Server, error) { return server, nil } })
	if diff := cmp.Diff(served(previous), s.report(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"start", "start", "retire"}, server.taken()); diff != "" {
		t.Errorf("asked nginx (-want +got):\n%s", diff)
	}
}

func TestAContainerThatIsStoppedBeforeItServesEnds(t *testing.T) {
	t.Parallel()
	s := newFixture(t, leaveState(t, wanted(3, 90, 10)))
	s.stop()
	s.passTimeUntil(t, "the agent ends", func() bool { return len(s.done) > 0 })
	if err := <-s.done; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	s.done <- nil // for the cleanup
}

func TestWhatAnotherContainerCantReadIsDiscarded(t *testing.T) {
	t.Parallel()
	valid := func(change func(*state)) string {
		s := state{Format: stateFormat, Split: wanted(3, 90, 10).Split, Instance: 7}
		change(&s)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, text := range map[string]string{
		"nothing":              "",
		"half of it":           valid(func(*state) {})[:50],
		"of another form":      valid(func(s *state) { s.Format++ }),
		"of an older agent":    `{"split":{"Ports":[{"Number":80}]},"instance":1}`,
		"of another pod":       valid(func(s *state) { s.Pod = "another" }),
		"without ports":        valid(func(s *state) { s.Split.Ports = nil }),
		"that can't be served": valid(func(s *state) { s.Split.Ports[0].Destinations[0].Weight = -1 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, func(o *Options) { leave(t, map[string]string{o.Render.Dir.State(): text}) })
			s.passTimeUntil(t, "time passes", func() bool { return s.clock.Since(time.Unix(1000, 0)) > 2*restoreAfter })
			if got, calls := s.readyz(t), s.server.taken(); got != "starting" || calls != nil {
				t.Errorf("%s, asked nginx %v", got, calls)
			}
			s.wants <- wanted(1, 100)
			if diff := cmp.Diff(served(wanted(1, 100)), s.report(t)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnotherContainerCountsOn(t *testing.T) {
	t.Parallel()
	line := accesslog.Untimed("b1", accesslog.KindSplit)
	line.Status = "200"
	text := line.Line() + "\n"
	for name, test := range map[string]struct {
		counts            string // "" for good ones
		killed            bool
		requests, workers float64
	}{
		"after nginx was killed":     {killed: true, requests: 7, workers: 1},
		"after nginx ended in order": {requests: 7},
		"from 0 when it can't read":  {counts: "{", killed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, leaveState(t, wanted(3, 100)), func(o *Options) {
				dir := o.Render.Dir
				leaveCounts(t, dir.Counts(), strings.Repeat(text, 5))
				files := map[string]string{dir.AccessLog(): strings.Repeat(text, 7)} // two are not counted yet
				if test.counts != "" {
					files[dir.Counts()] = test.counts
				}
				if test.killed {
					files[dir.Instance(7).PID()] = "7\n"
				}
				leave(t, files)
			})
			s.report(t)
			registry := prometheus.NewRegistry()
			registry.MustRegister(s.agent.counts)
			metrics := proxytest.Gather(t, registry)
			requests := byCode(metrics, exposition.Requests)["web-stable"]["200"]
			killed := metrics[exposition.Prefix+"workers_killed_total"].GetMetric()[0].GetCounter().GetValue()
			if float64(requests) != test.requests || killed != test.workers || dropped(metrics) != 0 {
				t.Errorf("counted %d requests, %f killed workers and %d bad lines, want %f, %f and 0", requests, killed, dropped(metrics), test.requests, test.workers)
			}
		})
	}
}

// leaveCounts saves the counts of a log.
func leaveCounts(t *testing.T, file, log string) {
	t.Helper()
	counted := counts.New(file, clock.RealClock{})
	if err := counted.Know(types.NamespacedName{Namespace: "shop", Name: "web"}, map[string]string{"b1": "web-stable"}); err != nil {
		t.Fatal(err)
	}
	counted.Take([]byte(log))
	if _, err := counted.Save(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNotNotedIsNotSaidToBeServed(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.wants <- wanted(1, 100, 0)
	s.report(t)
	obstacle := s.dir.State() + ".next"
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	s.wants <- wanted(2, 0, 100)
	if got := s.report(t); got.Generation != 1 || got.Configuration != served(wanted(1, 100, 0)).Configuration || got.Message == "" {
		t.Errorf("report %+v", got)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(served(wanted(2, 0, 100)), s.report(t)); diff != "" {
		t.Errorf("once it is noted (-want +got):\n%s", diff)
	}
}

// killContainer kills all processes, as the end of a container does.
func (c *crew) killContainer(t *testing.T) {
	t.Helper()
	agents, masters := children(t, c.supervisor.Process.Pid), c.masters(t)
	if err := c.supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.ended                    //nolint:errcheck // that it was killed
	for _, pid := range agents { // nginx's masters may be among them
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, m := range masters {
		_ = syscall.Kill(-m.PID, syscall.SIGKILL)
	}
	proxytest.Eventually(t, "all processes have ended", func() bool {
		for _, address := range []string{c.Status, fmt.Sprintf("127.0.0.1:%d", c.port)} {
			if connection, err := net.Dial("tcp", address); err == nil {
				_ = connection.Close()
				return false
			}
		}
		for _, m := range masters {
			if members, err := m.Members(); err != nil || len(members) > 0 {
				return false
			}
		}
		return true
	})
}

// TestAContainerThatIsStartedAgainServesWithoutTheAPI kills every process twice, with nothing
// that says what is wanted. No request that begins after the start is refused.
func TestAContainerThatIsStartedAgainServesWithoutTheAPI(t *testing.T) {
	t.Parallel()
	c := startCrew(t)
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	c.serve(t, stable.destination(75), canary.destination(25))
	c.serve(t, stable.destination(0), canary.destination(100)) // by the table alone
	url := fmt.Sprintf("http://127.0.0.1:%d/", c.port)
	get(t, url)
	proxytest.Eventually(t, "the request is in the log", func() bool { return c.loggedRequests(t) == 1 })
	if err := os.Remove(c.Wants); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for round := range 2 {
		c.killContainer(t)
		if err := os.Remove(c.Reports); err != nil {
			t.Fatal(err)
		}
		c.startSupervisor(t)
		proxytest.Eventually(t, "clients can connect", func() bool {
			connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
			return err == nil && connection.Close() == nil
		})
		for range 20 {
			response, err := client.Get(url)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("a request after that: %v %v", response, err)
			}
			_ = response.Body.Close()
		}
		c.awaitGeneration(t)
		proxytest.Eventually(t, "the killed workers are counted", func() bool { return c.killedWorkers(t) == float64(2*(round+1)) })
		proxytest.Eventually(t, "the requests are in the log", func() bool { return c.loggedRequests(t) == 1+20*(round+1) })
	}
	c.serve(t, stable.destination(100), canary.destination(0))
	get(t, url)
	if err := c.stop(t); err != nil {
		t.Errorf("the supervisor ended with %v", err)
	}
	want := map[string]map[string]uint64{"web-stable": {"200": 1}, "web-canary": {"200": 41}}
	if diff := cmp.Diff(want, c.counted(t)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, answeredBy(stable, canary)); diff != "" {
		t.Errorf("the backends answered (-want +got):\n%s", diff)
	}
}

// loggedRequests are the lines of the access log.
func (c *crew) loggedRequests(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(c.Render.Dir.AccessLog())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}
