// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// fakeServer is a Server that does what the test says and remembers what it was asked.
type fakeServer struct {
	mu    sync.Mutex
	calls []string
	// fail is the error of the next call by its name.
	fail  map[string]error
	ended chan struct{}
}

func (s *fakeServer) call(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, name)
	err := s.fail[name]
	delete(s.fail, name)
	return err
}

func (s *fakeServer) Start(context.Context, nginxproc.Launch) error {
	err := s.call("start")
	if err == nil {
		s.mu.Lock()
		s.ended = make(chan struct{})
		s.mu.Unlock()
	}
	return err
}
func (s *fakeServer) Adopt(context.Context, nginxproc.Launch) error { return s.call("adopt") }
func (s *fakeServer) Retire(context.Context) error                  { return s.call("retire") }
func (s *fakeServer) Stop(context.Context) error                    { return s.call("stop") }
func (s *fakeServer) Ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// end makes nginx end by itself.
func (s *fakeServer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ended)
}

func (s *fakeServer) failNext(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[name] = err
}

// taken returns what was asked since the last time.
func (s *fakeServer) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// nodeClock is a fake clock that can be set while what waits goes on to wait, and that
// remembers for how long each caller has waited.
type nodeClock struct {
	*clocktesting.FakeClock
	mu     sync.Mutex
	back   time.Duration
	waited []time.Duration
}

func (c *nodeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.FakeClock.Now().Add(-c.back)
}

func (c *nodeClock) setBack(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.back = d
}

func (c *nodeClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waited = append(c.waited, d)
	return c.FakeClock.After(d)
}

// awaits reports whether a caller has begun to wait for so long.
func (c *nodeClock) awaits(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.waited, d)
}

// fixture is an agent with everything around it in the test's hands.
type fixture struct {
	*memoryFeed
	server *fakeServer
	clock  *nodeClock
	agent  *Agent
	status string
	dir    conf.Dir
	stop   context.CancelFunc
	done   chan error
}

func newFixture(t *testing.T, change ...func(*Options)) *fixture {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{
		memoryFeed: newMemoryFeed(), server: &fakeServer{fail: map[string]error{}},
		clock:  &nodeClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1000, 0))},
		status: listener.Addr().String(), dir: conf.Dir(proxytest.MemoryDir(t)), done: make(chan error, 1),
	}
	opts := Options{
		Render: conf.Options{Dir: s.dir, Workers: 1, Connections: 64},
		Server: func(func(int)) (Server, error) { return s.server, nil }, Feed: s, Served: s.Report, Listener: listener,
		Drain: 10 * time.Second, QuitTimeout: time.Minute, ApplyTimeout: time.Minute, Settle: time.Second,
		Listen: func(conf.Socket) (int, error) { return unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0) },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			return here, there.Close()
		},
		Clock: s.clock, Log: testr.New(t),
	}
	for _, c := range change {
		c(&opts)
	}
	s.agent = New(opts)
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	go func() { s.done <- s.agent.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		s.passTimeUntil(t, "the agent ends", func() bool { return len(s.done) > 0 })
	})
	return s
}

// passTimeUntil lets the fake time pass until a condition holds.
func (s *fixture) passTimeUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	proxytest.Eventually(t, what, func() bool {
		s.clock.Step(500 * time.Millisecond)
		return condition()
	})
}

// goTo lets the fake time pass until the next second has lasted for so long.
func (s *fixture) goTo(part time.Duration) {
	now := s.clock.Now()
	s.clock.Step(now.Truncate(time.Second).Add(time.Second + part).Sub(now))
}

// report lets the fake time pass until the agent reports.
func (s *fixture) report(t *testing.T) confirmation.Served {
	t.Helper()
	s.passTimeUntil(t, "a report", s.reported)
	return <-s.reports
}

// reportAtOnce is a report for which no time has to pass.
func (s *fixture) reportAtOnce(t *testing.T) confirmation.Served {
	t.Helper()
	proxytest.Eventually(t, "a report", s.reported)
	return <-s.reports
}

func (s *fixture) reported() bool { return len(s.reports) > 0 }

// closing reports whether the newest nginx asks clients to close their connections.
func (s *fixture) closing(t *testing.T) bool {
	t.Helper()
	newest, err := nginxproc.LastInstance(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.Readlink(s.dir.Instance(newest).First())
	if err != nil {
		t.Fatal(err)
	}
	return table == "empty" // the empty folder, which no request is found in
}

func (s *fixture) readyz(t *testing.T) string {
	t.Helper()
	_, body := get(t, "http://"+s.status+"/readyz")
	return strings.TrimSpace(body)
}

func wanted(generation int64, weights ...int32) feed.Want {
	port := traffic.Port{Number: 80, TargetNumber: 8080, Protocol: traffic.ProtocolHTTP}
	for i, w := range weights {
		port.Destinations = append(port.Destinations, traffic.Destination{
			Service: []string{"web-stable", "web-canary"}[i], Address: "10.0.0.1", Port: int32(80 + i), Weight: w,
		})
	}
	return feed.Want{Split: traffic.Split{Generation: generation, Ports: []traffic.Port{port}}}
}

func TestTheAgentReloadsOnlyForBackends(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	if got := s.readyz(t); got != "starting" {
		t.Errorf("ready before anything is served: %q", got)
	}
	for _, step := range []struct {
		name string
		want feed.Want
		does []string
	}{
		{"the first configuration starts nginx", wanted(1, 100, 0), []string{"start", "retire"}},
		{"a change of weights asks nginx for nothing", wanted(2, 95, 5), nil},
		{"the same again asks nginx for nothing", wanted(3, 95, 5), nil},
		{"a backend less is a reload", wanted(4, 100), []string{"start", "retire"}},
		{"a backend more is a reload", wanted(5, 100, 0), []string{"start", "retire"}},
	} {
		s.wants <- step.want
		if diff := cmp.Diff(served(step.want), s.report(t)); diff != "" {
			t.Errorf("%s: report (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.does, s.server.taken()); diff != "" {
			t.Errorf("%s: asked nginx (-want +got):\n%s", step.name, diff)
		}
		if got := s.readyz(t); got != "ok" {
			t.Errorf("%s: not ready: %s", step.name, got)
		}
	}
	if s.closing(t) {
		t.Error("clients are still asked to close")
	}
}

func TestTheLastGoodConfigurationStays(t *testing.T) {
	t.Parallel()
	refused := feed.Want{Problems: []traffic.Problem{{Condition: splitv1.ConditionAccepted, Message: "spec.service: no such Service"}}}
	for name, test := range map[string]struct {
		call    string
		want    feed.Want
		message string
	}{
		"nginx refuses it":          {"start", wanted(2, 100), "invalid port"},
		"the split is refused":      {"", refused, "nothing can be served: spec.service: no such Service"},
		"it can't be rendered":      {"", wanted(2, -1), `spec.backends: Service "web-stable" has the weight -1; it must not be negative`},
		"the Service has gone away": {"", feed.Want{}, "nothing can be served: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			s.wants <- wanted(1, 100, 0)
			s.report(t)
			s.server.taken()
			if test.call != "" {
				s.server.failNext(test.call, errors.New("invalid port"))
			}
			s.wants <- test.want
			previous := served(wanted(1, 100, 0))
			previous.Message = test.message
			if diff := cmp.Diff(previous, s.report(t)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if got := s.readyz(t); got != "ok" {
				t.Errorf("not ready any more: %s", got)
			}
			if left, err := filepath.Glob(filepath.Join(string(s.dir), "nginx-2")); err != nil || left != nil {
				t.Errorf("%v: what could not be started has left its folder", left)
			}
			if slices.Contains(s.server.taken(), "retire") {
				t.Error("the one that serves was told to finish")
			}
			if test.call != "" { // what nginx refused is tried again
				if diff := cmp.Diff(served(test.want), s.report(t)); diff != "" {
					t.Errorf("second report (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestAnAgentThatCantStartNginxIsNotReadyAndTriesAgain(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.server.failNext("start", errors.New("port is taken"))
	s.wants <- wanted(1, 100)
	if diff := cmp.Diff(confirmation.Served{Message: "port is taken"}, s.report(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if got := s.readyz(t); got != "starting" {
		t.Errorf("ready: %s", got)
	}
	if diff := cmp.Diff(served(wanted(1, 100)), s.report(t)); diff != "" {
		t.Errorf("second report (-want +got):\n%s", diff)
	}
	if got := s.readyz(t); got != "ok" {
		t.Errorf("not ready: %s", got)
	}
}

func TestDraining(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.wants <- wanted(1, 100, 0)
	s.report(t)
	start := s.clock.Now()
	s.stop()
	proxytest.Eventually(t, "the agent is not ready while it drains", func() bool { return s.readyz(t) == "draining" })
	proxytest.Eventually(t, "clients are asked to close", func() bool { return s.closing(t) })
	s.wants <- wanted(2, 0, 100)
	left := conf.LookupsForgotten(start).Sub(start)
	proxytest.Eventually(t, "new weights are waited for", func() bool { return s.clock.awaits(left) })
	s.clock.Step(left)
	if diff := cmp.Diff(served(wanted(2, 0, 100)), s.reportAtOnce(t)); diff != "" {
		t.Errorf("weights change while it drains (-want +got):\n%s", diff)
	}
	s.wants <- wanted(3, 100)
	if diff := cmp.Diff(served(wanted(3, 100)), s.reportAtOnce(t)); diff != "" {
		t.Errorf("backends change while it drains (-want +got):\n%s", diff)
	}
	if got := s.readyz(t); got != "draining" {
		t.Errorf("ready again: %s", got)
	}
	if !s.closing(t) {
		t.Error("clients are not asked to close any more")
	}
	s.server.taken()
	s.passTimeUntil(t, "nginx is stopped", func() bool { return len(s.server.taken()) > 0 })
	if passed := s.clock.Since(start); passed < 10*time.Second {
		t.Errorf("nginx was stopped after %s, want 10 s", passed)
	}
	s.passTimeUntil(t, "the agent ends", func() bool { return len(s.done) > 0 })
	if err := <-s.done; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	s.done <- nil // for the cleanup
}

func TestNginxIsStartedAgainWhenItEnds(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.wants <- wanted(1, 100, 0)
	s.report(t)
	s.server.taken()
	for _, failures := range []int{0, 1} {
		if failures > 0 {
			s.server.failNext("start", errors.New("no memory"))
		}
		s.server.end()
		want := append(slices.Repeat([]string{"start"}, failures+1), "retire")
		var got []string
		s.passTimeUntil(t, "nginx is started again", func() bool {
			got = append(got, s.server.taken()...)
			return len(got) == len(want)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %d failures: asked nginx (-want +got):\n%s", failures, diff)
		}
	}
	if diff := cmp.Diff(served(wanted(1, 100, 0)), s.report(t)); diff != "" {
		t.Errorf("once it is started again (-want +got):\n%s", diff)
	}
	s.wants <- wanted(2, 50, 50)
	if diff := cmp.Diff(served(wanted(2, 50, 50)), s.report(t)); diff != "" {
		t.Errorf("weights after that (-want +got):\n%s", diff)
	}
	if calls := s.server.taken(); calls != nil {
		t.Errorf("asked nginx %v for weights", calls)
	}
}

// At 0.3 s of a second nginx remembers until 0.7 s later; 0.15 s are for its delays.
func TestWhatNginxRemembersIsWaitedFor(t *testing.T) {
	t.Parallel()
	const forgotten = 850 * time.Millisecond
	s := newFixture(t)
	s.wants <- wanted(1, 100, 0)
	s.report(t)
	at := func(what string, d time.Duration, act func()) {
		s.goTo(300 * time.Millisecond)
		act()
		proxytest.Eventually(t, what, func() bool { return s.clock.awaits(d) })
		if s.reported() {
			t.Errorf("%s: reported %+v before", what, <-s.reports)
		}
	}
	at("new weights are reported later", forgotten, func() { s.wants <- wanted(2, 50, 50) })
	s.report(t)
	at("clients of a previous nginx are asked to close for long enough", forgotten+time.Second, func() { s.wants <- wanted(3, 100) })
	s.report(t)
	at("and before a proxy ends", forgotten+10*time.Second, s.stop)
}

func TestANginxThatRemembersForLongIsReplaced(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.wants <- wanted(1, 100, 0)
	s.report(t)
	s.server.taken()
	s.goTo(300 * time.Millisecond)
	s.wants <- wanted(2, 50, 50)
	proxytest.Eventually(t, "new weights are written", func() bool { return s.clock.awaits(850 * time.Millisecond) })
	s.clock.setBack(time.Hour)
	previous := served(wanted(1, 100, 0))
	previous.Message = errClockSetBack.Error()
	if diff := cmp.Diff(previous, s.report(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(served(wanted(2, 50, 50)), s.report(t)); diff != "" {
		t.Errorf("second report (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"start", "retire"}, s.server.taken()); diff != "" {
		t.Errorf("asked nginx (-want +got):\n%s", diff)
	}
}

func TestWhileTwoMayServeAnotherIsStartedWhateverIsWanted(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]feed.Want{"the same": wanted(2, 100), "what was before": wanted(3, 50, 50)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			s.wants <- wanted(1, 100, 0)
			s.report(t)
			s.server.taken()
			s.server.failNext("retire", errors.New("workers accept still"))
			s.wants <- wanted(2, 100)
			previous := served(wanted(1, 100, 0))
			previous.Message = "workers accept still"
			if diff := cmp.Diff(previous, s.report(t)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			s.wants <- next
			if diff := cmp.Diff(served(next), s.report(t)); diff != "" {
				t.Errorf("second report (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"start", "retire", "start", "retire"}, s.server.taken()); diff != "" {
				t.Errorf("asked nginx (-want +got):\n%s", diff)
			}
		})
	}
}

// leftBehind is a Store with what a previous agent left.
type leftBehind struct {
	fdstore.None
	kept map[string]int
}

func (l leftBehind) Kept() map[string]int { return l.kept }

func TestAnNginxThatEndedWithItsAgentIsStartedAgainBeforeAnythingIsWanted(t *testing.T) {
	t.Parallel()
	previous := wanted(1, 90, 10)
	server := &fakeServer{fail: map[string]error{"start": errors.New("no memory")}}
	s := newFixture(t, func(o *Options) {
		fd, err := o.Listen(conf.Socket{})
		if err != nil {
			t.Fatal(err)
		}
		o.Files = leftBehind{kept: map[string]int{fdstore.SocketPrefix + "tcp 0.0.0.0:8080": fd}}
		if err := saveState(o.Render.Dir, state{Split: previous.Split, Instance: 1}); err != nil {
			t.Fatal(err)
		}
		o.Server = func(func(int)) (Server, error) { return server, nil }
	})
	var got []string
	s.passTimeUntil(t, "nginx is started", func() bool {
		got = append(got, server.taken()...)
		return slices.Contains(got, "retire")
	})
	if diff := cmp.Diff([]string{"start", "start", "retire"}, got); diff != "" {
		t.Errorf("asked nginx (-want +got):\n%s", diff)
	}
	proxytest.Eventually(t, "it serves what was live with the previous agent", func() bool { return s.readyz(t) == "ok" })
	if diff := cmp.Diff(served(previous), s.report(t)); diff != "" {
		t.Errorf("what it says before anything is wanted (-want +got):\n%s", diff)
	}
	s.wants <- wanted(2, 50, 50)
	if diff := cmp.Diff(served(wanted(2, 50, 50)), s.report(t)); diff != "" {
		t.Errorf("weights after that (-want +got):\n%s", diff)
	}
	if calls := server.taken(); calls != nil {
		t.Errorf("asked nginx %v for weights", calls)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	if code, _ := get(t, "http://"+s.status+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz answers %d while nginx is not running", code)
	}
	if code, _ := get(t, "http://"+s.status+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d while nginx is not running", code)
	}
}

func TestLastCountsWaitForTheOneWhoScrapes(t *testing.T) {
	t.Parallel()
	for name, scrapes := range map[string]bool{"a Prometheus scrapes": true, "none scrapes": false} {
		t.Run(name, func(t *testing.T) {
			status := newStatusServer(prometheus.NewRegistry(), confirmation.Served{Pod: "uid"}, &atomic.Int32{})
			if scrapes {
				status.scraped <- struct{}{}
			}
			timeout, waited := make(chan time.Time), make(chan struct{})
			go func() {
				status.awaitScrape(timeout)
				close(waited)
			}()
			if scrapes {
				select {
				case status.scraped <- struct{}{}: // taken as the one from before
				case <-time.After(time.Minute):
					t.Fatal("it did not look")
				}
			}
			select {
			case <-waited:
			case <-time.After(time.Minute):
				t.Error("it waits though the counts were fetched")
			}
		})
	}
}
