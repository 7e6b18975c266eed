// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

func TestDue(t *testing.T) {
	tests := []struct {
		name    string
		elapsed time.Duration
		handled int64
		want    int64
	}{
		{name: "nothing is due at the start", want: 0},
		{name: "one request is due after its share of a second", elapsed: 5 * time.Millisecond, want: 1},
		{name: "nothing is due twice", elapsed: 5 * time.Millisecond, handled: 1, want: 0},
		{name: "a late tick is made up for", elapsed: time.Second, handled: 100, want: 100},
		{name: "a clock that went back asks for nothing", elapsed: -time.Second, handled: 1, want: 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := due(test.elapsed, 200, test.handled); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// appServer answers as the demo's app does and notes how many requests each
// connection carried.
type appServer struct {
	*httptest.Server
	mu          sync.Mutex
	connections map[string]int
}

func newAppServer(t *testing.T, status int) *appServer {
	t.Helper()
	s := &appServer{connections: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.connections[r.RemoteAddr]++
		s.mu.Unlock()
		w.Header().Set("X-Version", "v1")
		if clients := r.Header.Get("X-Forwarded-For"); clients != "" {
			w.Header().Set("X-Forwarded-For", clients)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s
}

// drive runs a generator for a simulated time and returns its report.
func drive(t *testing.T, config Config) Report {
	t.Helper()
	fake := testingclock.NewFakeClock(time.Unix(0, 0))
	g, err := New(config, fake, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(t.Context())
	}()
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-done:
			return g.Report()
		case <-pace.C:
			fake.Step(tick)
		}
	}
}

func TestEveryRequestIsSentAndCountedOnce(t *testing.T) {
	server := newAppServer(t, http.StatusOK)
	config := DefaultConfig(server.URL)
	config.Duration = time.Second
	report := drive(t, config)
	served, most := -1, 0 // one request found out that the server answers
	for _, n := range server.connections {
		served, most = served+n, max(most, n)
	}
	if report.Sent != 200 || served != 200 || report.Version("v1").Requests != 200 {
		t.Errorf("sent %d, served %d, counted %d, want 200 each", report.Sent, served, report.Version("v1").Requests)
	}
	if report.Failed() != 0 || report.InFlight != 0 || report.Skipped != 0 {
		t.Errorf("failed %d, in flight %d, skipped %d, want none", report.Failed(), report.InFlight, report.Skipped)
	}
	if int(report.Connections) != len(server.connections)-1 {
		t.Errorf("counted %d connections, the server saw %d and the first is not counted", report.Connections, len(server.connections))
	}
	if most > config.MaxLife {
		t.Errorf("a connection carried %d requests, at most %d were allowed", most, config.MaxLife)
	}
}

func TestConnectionsThatLeadThroughAProxyAreCounted(t *testing.T) {
	server := newAppServer(t, http.StatusOK)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(address))
	t.Cleanup(proxy.Close)
	for target, share := range map[string]int64{server.URL: 0, proxy.URL: 1} {
		config := DefaultConfig(target)
		config.Duration = time.Second
		if r := drive(t, config); r.Proxied != share*r.Connections || r.Connections == 0 {
			t.Errorf("%d of %d connections led through a proxy, want %d", r.Proxied, r.Connections, share*r.Connections)
		}
	}
}

func TestConnectionsAreKeptAndNew(t *testing.T) {
	server := newAppServer(t, http.StatusOK)
	config := DefaultConfig(server.URL)
	config.Duration, config.MinLife, config.MaxLife = 5*time.Second, 10, 20
	report := drive(t, config)
	single, kept := 0, 0
	for _, n := range server.connections {
		if n > config.MaxLife {
			t.Errorf("a connection carried %d requests", n)
		}
		if n == 1 {
			single++
		}
		if n >= config.MinLife {
			kept++
		}
	}
	if single < 50 || kept < 20 {
		t.Errorf("got %d connections for one request and %d for many, of %d requests", single, kept, report.Sent)
	}
}

func TestFailuresOfTheAppCarryItsVersion(t *testing.T) {
	config := DefaultConfig(newAppServer(t, http.StatusServiceUnavailable).URL)
	config.Duration = 100 * time.Millisecond
	report := drive(t, config)
	if v := report.Version("v1"); v.Failed != 20 || report.Unanswered != 0 {
		t.Errorf("got %d failed by v1 and %d unanswered, want 20 and 0", v.Failed, report.Unanswered)
	}
}

func TestItBeginsWhenTheTargetAnswers(t *testing.T) {
	var mu sync.Mutex
	refused := 3
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if refused > 0 {
			refused--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("X-Version", "v1")
	}))
	defer server.Close()
	config := DefaultConfig(server.URL)
	config.Duration = 100 * time.Millisecond
	report := drive(t, config)
	if report.Sent != 20 || report.Failed() != 0 {
		t.Errorf("sent %d, failed %d, want 20 and 0", report.Sent, report.Failed())
	}
	if begun := report.StartedAt.Sub(time.Unix(0, 0)); begun < 3*knock {
		t.Errorf("it began after %s, before the target answered", begun)
	}
}

// TestTheControlTellsOfASlowMachine has a control whose third answer takes ten seconds of
// the generator's time.
func TestTheControlTellsOfASlowMachine(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Unix(0, 0))
	var mu sync.Mutex
	asked := 0
	beside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == 3 {
			fake.Step(10 * time.Second)
		}
		w.Header().Set("X-Version", "v1")
	}))
	defer beside.Close()
	config := DefaultConfig(newAppServer(t, http.StatusOK).URL)
	config.Control = beside.URL
	g, err := New(config, fake, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx)
	}()
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for g.Report().Control.Requests < 5 {
		<-pace.C
		fake.Step(tick)
	}
	cancel()
	<-done
	if c := g.Report().Control; c.Slow == 0 || c.Slow == c.Requests || c.Slowest < 10 {
		t.Errorf("got %+v, want one slow request or those that were under way with it", c)
	}
}

func TestItEndsWhenTheTargetNeverAnswers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	g, err := New(DefaultConfig(server.URL), clock.RealClock{}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Run(ctx)
	if report := g.Report(); report.Sent != 0 || !report.StartedAt.IsZero() {
		t.Errorf("got %+v", report)
	}
}

func TestTooManyInFlightAreSkippedAndSaidSo(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(afterTheFirst(func() { <-release }))
	defer server.Close()
	config := DefaultConfig(server.URL)
	config.MaxInFlight, config.Duration = 3, 50*time.Millisecond
	fake := testingclock.NewFakeClock(time.Unix(0, 0))
	g, err := New(config, fake, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(t.Context())
	}()
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for g.Report().Skipped < 7 {
		<-pace.C
		fake.Step(tick)
	}
	if report := g.Report(); report.Sent != 3 || report.InFlight != 3 {
		t.Errorf("sent %d, in flight %d, want 3 each", report.Sent, report.InFlight)
	}
	close(release)
	<-done
	if report := g.Report(); report.Version("v1").Requests != 3 || report.InFlight != 0 {
		t.Errorf("the requests in flight were cut off: %+v", report)
	}
}

// afterTheFirst answers as the app does; from the second request on it does
// something before.
func afterTheFirst(do func()) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) > 1 {
			do()
		}
		w.Header().Set("X-Version", "v1")
	}
}

func TestTheEndOfTheContextCutsNoRequestOff(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, 100)
	server := httptest.NewServer(afterTheFirst(func() {
		arrived <- struct{}{}
		<-release
	}))
	defer server.Close()
	fake := testingclock.NewFakeClock(time.Unix(0, 0))
	config := DefaultConfig(server.URL)
	config.MaxInFlight = 1
	g, err := New(config, fake, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx)
	}()
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for len(arrived) == 0 {
		<-pace.C
		fake.Step(tick)
	}
	cancel()
	close(release)
	<-done
	// A tick that was due before the end may have sent another one.
	if report := g.Report(); report.Failed() != 0 || report.Version("v1").Requests == 0 || report.Version("v1").Requests != report.Sent {
		t.Errorf("got %+v", report)
	}
}

func TestKinds(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    Kind
	}{
		{name: "an answer of the app is ok", want: KindOK, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Version", "v1")
		}},
		{name: "a client error of the app is not its failure", want: KindOK, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Version", "v1")
			w.WriteHeader(http.StatusNotFound)
		}},
		{name: "a good answer without a version does not come from the app", want: KindNoVersion, handler: func(http.ResponseWriter, *http.Request) {}},
		{name: "a 502 of a proxy does not come from the app", want: KindNoVersion, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
		}},
		{name: "a redirect is not followed", want: KindNoVersion, handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}},
		{name: "a connection that ends before the answer is closed", want: KindClosed, handler: func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, func(c net.Conn) { _ = c.Close() })
		}},
		{name: "a connection that ends in the answer is closed", want: KindClosed, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Version", "v1")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		}},
		{name: "a reset is a reset", want: KindReset, handler: func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, func(c net.Conn) {
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			})
		}},
		{name: "an answer that takes too long is a timeout", want: KindTimeout, handler: func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			limit := time.Minute
			if test.want == KindTimeout {
				limit = 200 * time.Millisecond
			}
			if got := callOnce(t, server.URL, limit); got.kind != test.want {
				t.Errorf("got %q (%s), want %q", got.kind, got.detail, test.want)
			}
		})
	}
}

func TestARefusedConnectionIsRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if got := callOnce(t, server.URL, time.Minute); got.kind != KindRefused {
		t.Errorf("got %q (%s)", got.kind, got.detail)
	}
}

func TestANameThatDoesNotResolveIsDNS(t *testing.T) {
	if got := callOnce(t, "http://website.invalid", 200*time.Millisecond); got.kind != KindDNS && got.kind != KindTimeout {
		t.Errorf("got %q (%s)", got.kind, got.detail)
	}
}

func callOnce(t *testing.T, target string, limit time.Duration) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := newSession(1)
	defer s.close()
	return s.call(ctx, target, clock.RealClock{})
}

func hijack(w http.ResponseWriter, use func(net.Conn)) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		use(c)
	}
}

func TestHandlerServesTheReport(t *testing.T) {
	g, err := New(DefaultConfig("http://website"), testingclock.NewFakeClock(time.Unix(0, 0)), rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	g.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/report", http.NoBody))
	var report Report
	if err := json.Unmarshal(recorder.Body.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Target != "http://website" || report.Rate != 200 {
		t.Errorf("got %+v", report)
	}
}

func TestAnIdleConnectionThatWasClosedIsNoFailure(t *testing.T) {
	// The server closes each connection after one answer without saying so: the
	// next request finds its idle connection closed and net/http sends it again.
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Version", "v1")
	}))
	closed := make(chan struct{}, 10)
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			_ = c.Close()
			closed <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	s := newSession(10)
	defer s.close()
	first := s.call(t.Context(), server.URL, clock.RealClock{})
	<-closed
	second := s.call(t.Context(), server.URL, clock.RealClock{})
	if first.kind != KindOK || second.kind != KindOK {
		t.Fatalf("got %q and %q", first.kind, second.kind)
	}
	if total := first.opened + second.opened; total != 2 {
		t.Errorf("got %d connections, want 2", total)
	}
	if first.retries != 0 {
		t.Errorf("got %d retries of the first request", first.retries)
	}
}

func TestARepeatedRequestIsCounted(t *testing.T) {
	connections := &connectionCount{}
	trace := connections.trace()
	trace.GotConn(httptrace.GotConnInfo{Reused: true}) // found closed
	trace.GotConn(httptrace.GotConnInfo{})             // sent again by net/http
	if connections.used != 2 || connections.opened != 1 {
		t.Errorf("got %+v, want 2 used and 1 opened", *connections)
	}
}
