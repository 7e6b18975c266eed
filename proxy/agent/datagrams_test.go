// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

func listenUDP(t *testing.T, service, address string) *backend {
	t.Helper()
	there := proxytest.ListenUDP(t, service, address)
	return &backend{service: service, address: &net.TCPAddr{IP: there.IP, Port: there.Port}}
}

func mustExchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	answer, err := proxytest.Exchange(conn, text)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestDatagramsPassInBothDirections(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			r := startRig(t, rigOptions{})
			r.want(t, traffic.ProtocolUDP, listenUDP(t, "dns-stable", net.JoinHostPort(host, "0")).destination(1))
			conn := proxytest.DialUDP(t, host, r.port)
			for i, text := range []string{"", "one", strings.Repeat("x", 60000)} {
				if got, want := mustExchange(t, conn, text), fmt.Sprintf("dns-stable %d %s", i+1, text); got != want {
					t.Errorf("got %.30q…, %d bytes; want %.30q…", got, len(got), want)
				}
			}
		})
	}
}

// TestNoDatagramIsLostWhileBackendsChange asks and waits for the answer, with a new
// session each time, while weights change and a TCP port of the same number makes
// nginx reload.
func TestNoDatagramIsLostWhileBackendsChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := listenUDP(t, "dns-stable", "127.0.0.1:0"), listenUDP(t, "dns-canary", "127.0.0.1:0")
	stream, other := listenTCP(t, "dns-tcp"), listenTCP(t, "dns-tcp")
	other.service = "dns-other"
	both := func(weight, streams int32) traffic.Split {
		port := traffic.Port{Number: 53, TargetNumber: r.port, Protocol: traffic.ProtocolUDP, Destinations: []traffic.Destination{
			stable.destination(100 - weight), canary.destination(weight),
		}}
		streamed := port
		streamed.Protocol, streamed.Destinations = traffic.ProtocolTCP, []traffic.Destination{stream.destination(streams), other.destination(1)}
		return traffic.Split{Ports: []traffic.Port{port, streamed}}
	}
	r.wantSplit(t, both(0, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var asked atomic.Int64
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				conn := proxytest.DialUDP(t, "127.0.0.1", r.port)
				if _, err := proxytest.Exchange(conn, "?"); err != nil {
					t.Errorf("after %d answers: %v", asked.Load(), err)
					return
				}
				_ = conn.Close()
				asked.Add(1)
			}
		})
	}
	// However slow the machine is, there are changes until enough was asked in between.
	for step := int32(0); step < 10 || asked.Load() < 200 && !t.Failed(); step++ {
		r.wantSplit(t, both(10*(step%10), 1+step%2))
		if got := say(t, r, "hello"); got != "dns-tcp hello" {
			t.Errorf("over TCP: %q", got)
		}
	}
	cancel()
	wg.Wait()
}

func TestSharesOfSessionsAreAsTheWeights(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := listenUDP(t, "dns-stable", "127.0.0.1:0"), listenUDP(t, "dns-canary", "127.0.0.1:0")
	r.want(t, traffic.ProtocolUDP, stable.destination(93), canary.destination(7))
	const n = 2000
	k := 0
	for range n { // the clients stay open: another on the port of one of them would be the same session
		conn := proxytest.DialUDP(t, "127.0.0.1", r.port)
		if strings.HasPrefix(mustExchange(t, conn, "?"), "dns-canary") {
			k++
		}
	}
	if !within(n, k, 0.07) {
		t.Errorf("%d of %d sessions went to the canary; 7 %% do not give that", k, n)
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"dns-stable": {"200": n - k}, "dns-canary": {"200": k}}
	ended := func() (n int) {
		for _, codes := range r.counter(t, "serin_proxy_sessions_total") {
			for _, of := range codes {
				n += of
			}
		}
		return n
	}
	proxytest.Eventually(t, "all sessions have ended", func() bool { return ended() >= n })
	if diff := cmp.Diff(want, r.counter(t, "serin_proxy_sessions_total")); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}
