// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

func TestQuietLastsFromTheLastClientToTheLastCount(t *testing.T) {
	t.Parallel()
	type count struct {
		accepted, datagrams int64
		failed              bool
	}
	for name, test := range map[string]struct {
		counts []count // one each second
		want   time.Duration
	}{
		"nothing is known":           {nil, 0},
		"one count says nothing":     {[]count{{accepted: 7}}, 0},
		"only who asks has come":     {[]count{{accepted: 7}, {accepted: 8}, {accepted: 9}}, 2 * time.Second},
		"a client connects":          {[]count{{accepted: 7}, {accepted: 8}, {accepted: 10}, {accepted: 11}}, time.Second},
		"a datagram comes":           {[]count{{accepted: 7}, {accepted: 8, datagrams: 1}, {accepted: 9, datagrams: 1}}, time.Second},
		"another nginx counts":       {[]count{{accepted: 7}, {accepted: 8}, {accepted: 1}}, 0},
		"a count fails":              {[]count{{accepted: 7}, {accepted: 8}, {failed: true}}, 0},
		"what follows a failed one":  {[]count{{accepted: 7}, {failed: true}, {accepted: 8}, {accepted: 9}}, time.Second},
		"the same number, once more": {[]count{{accepted: 7}, {accepted: 7}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var q quiet
			now := time.Unix(1000, 0)
			for _, c := range test.counts {
				if c.failed {
					q.interrupt(now)
				} else {
					q.note(c.accepted, c.datagrams, now)
				}
				now = now.Add(time.Second)
			}
			if got := q.lasted(); got != test.want {
				t.Errorf("it has lasted for %s, want %s", got, test.want)
			}
		})
	}
}

// lateClients are ways to come to a proxy that drains: by a request on a connection of its own,
// by a connection, or by a datagram.
var lateClients = map[traffic.Protocol]func(t *testing.T, r *rig) string{
	traffic.ProtocolHTTP: func(t *testing.T, r *rig) string {
		_, body := get(t, r.url("/")) // whose answer closes the connection
		return body
	},
	traffic.ProtocolTCP: func(t *testing.T, r *rig) string { return say(t, r, "hello") },
	traffic.ProtocolUDP: func(t *testing.T, r *rig) string {
		return mustExchange(t, proxytest.DialUDP(t, "127.0.0.1", r.port), "hello")
	},
}

// TestAProxyServesClientsThatComeLate has a client come each second for longer than the drain
// lasts, as those of a node that learns late of a pod's end. The clock is the test's.
func TestAProxyServesClientsThatComeLate(t *testing.T) {
	t.Parallel()
	for protocol, come := range lateClients {
		for name, test := range map[string]struct {
			late, limit, ends time.Duration
		}{
			"no client comes":                   {limit: 30 * time.Second, ends: 10 * time.Second},
			"clients come until they know":      {late: 15 * time.Second, limit: 30 * time.Second, ends: 17 * time.Second},
			"clients come on and on":            {late: time.Hour, limit: 20 * time.Second, ends: 20 * time.Second},
			"clients that are not to be served": {late: time.Hour, ends: 10 * time.Second},
		} {
			t.Run(string(protocol)+"/"+name, func(t *testing.T) {
				t.Parallel()
				clock := &nodeClock{FakeClock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second))}
				r := startRig(t, rigOptions{drain: 10 * time.Second, drainLimit: test.limit, clock: clock})
				r.want(t, protocol, listenFor(t, protocol).destination(1))
				start := clock.Now()
				r.stop()
				proxytest.Eventually(t, "the agent drains", func() bool {
					_, body := get(t, "http://"+r.status+"/readyz")
					return body == "draining\n"
				})
				for r.stopped.Load() == nil {
					if clock.Since(start) < min(test.late, max(test.limit, 10*time.Second)-2*time.Second) {
						if got := come(t, r); !strings.Contains(got, "web") {
							t.Fatalf("after %s the answer is %q", clock.Since(start), got)
						}
					}
					r.passSecond(t, clock)
				}
				if err := r.shutdown(t); err != nil {
					t.Errorf("the agent ended with %v", err)
				}
				if passed := r.stopped.Load().Sub(start); passed < test.ends || passed > test.ends+5*time.Second {
					t.Errorf("it ended after %s, want %s", passed, test.ends)
				}
			})
		}
	}
}

// listenFor starts a backend.
func listenFor(t *testing.T, protocol traffic.Protocol) *backend {
	t.Helper()
	switch protocol {
	case traffic.ProtocolTCP:
		return listenTCP(t, "web")
	case traffic.ProtocolUDP:
		return listenUDP(t, "web", "127.0.0.1:0")
	default:
		return startBackend(t, "web", nil)
	}
}

// passSecond lets a second pass, and waits until the agent has counted clients.
func (r *rig) passSecond(t *testing.T, clock *nodeClock) {
	t.Helper()
	clock.Step(time.Second)
	q := &r.agent.busy.quiet
	proxytest.Eventually(t, "clients are counted", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.seen.Equal(clock.Now()) || r.stopped.Load() != nil
	})
}

func TestAConnectionThatComesTooLateIsRefused(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	b, release := slowBackend(t, "web", func(*http.Server) {})
	r.want(t, traffic.ProtocolHTTP, b.destination(1))
	response, err := http.Get(r.url("/slow"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	r.stop()
	proxytest.Eventually(t, "connections are refused while a request finishes", func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(r.port))))
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if len(r.done) > 0 {
		t.Error("the agent has ended while a request was answered")
	}
	release()
	if err := r.shutdown(t); err != nil {
		t.Error(err)
	}
}
