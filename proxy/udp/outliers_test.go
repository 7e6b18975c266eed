// SPDX-License-Identifier: Apache-2.0

package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// TestOutlierDetection draws the canary whenever it may be drawn, and stable for those that may not
// go there.
func TestOutlierDetection(t *testing.T) {
	stable, canary := netip.MustParseAddrPort("10.0.0.1:53"), netip.MustParseAddrPort("10.0.0.2:53")
	both := &draw{}
	both.add("stable", stable, 9)
	both.add("canary", canary, 1)
	last := func(n int64) int64 { return n - 1 }
	var (
		now time.Time
		ts  *outlierDetection
	)
	proven := func(backend netip.AddrPort) { ts.known[backend] = &probe{proven: true} }
	session := func() string {
		to, probes, admitted := ts.choose(both, now, last)
		return fmt.Sprintf("%s %t %t", to.service, probes, admitted)
	}
	tests := []struct {
		name  string
		given func()
		want  []string
	}{
		{
			name: "one session tries it, and others go elsewhere meanwhile, one of which tries the other",
			want: []string{"canary true true", "stable true true", "canary false false"},
		},
		{
			name:  "after an answer all go there",
			given: func() { session(); ts.answered(canary) },
			want:  []string{"canary false true", "canary false true"},
		},
		{
			name:  "without a refusal in time all go there",
			given: func() { session(); now = now.Add(probeTime) },
			want:  []string{"canary false true", "canary false true"},
		},
		{
			name:  "after a refusal no session goes there for a while",
			given: func() { session(); ts.refuse(canary, now); proven(stable); now = now.Add(probePause - 1) },
			want:  []string{"stable false true", "stable false true"},
		},
		{
			name:  "and then it is tried again",
			given: func() { session(); ts.refuse(canary, now); proven(stable); now = now.Add(probePause) },
			want:  []string{"canary true true", "stable false true"},
		},
		{
			name:  "an answer that comes after a refusal was on its way before",
			given: func() { session(); ts.refuse(canary, now); ts.answered(canary) },
			want:  []string{"stable true true"},
		},
		{
			name:  "a pod of a proven one that stops keeps no session from the others",
			given: func() { proven(canary); ts.refuse(canary, now); ts.refuse(canary, now) },
			want:  []string{"canary false true"},
		},
		{
			name: "but when it answers no other session, it is gone",
			given: func() {
				proven(canary)
				proven(stable)
				for range maxRefusals {
					ts.refuse(canary, now)
				}
			},
			want: []string{"stable false true"},
		},
		{
			name: "one that had no weight for a while is tried anew",
			given: func() {
				session()
				ts.answered(canary)
				alone := &draw{}
				alone.add("stable", stable, 1)
				ts.keep(alone)
			},
			want: []string{"canary true true"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now, ts = time.Unix(1000, 0), newOutlierDetection()
			if test.given != nil {
				test.given()
			}
			for i, want := range test.want {
				if got := session(); got != want {
					t.Errorf("session %d: got %q, want %q", i+1, got, want)
				}
			}
		})
	}
}

// A canary that the node does not know yet refuses what is sent there. Nothing is lost,
// and once it is there it gets its share.
func TestDatagramsThatABackendRefusesGoElsewhere(t *testing.T) {
	stable, canary := listenUDP(t, "dns-stable"), listenUDP(t, "dns-canary")
	gone := proxytest.FreePort(t) // no backend is there
	canary.address.Port, gone = int(gone), int32(canary.address.Port)
	d, c, l := heldPort(t, stable.destination(1))
	mustExchange(t, proxytest.DialUDP(t, "127.0.0.1", l.Number), "?")
	l.Port.Destinations = []traffic.Destination{stable.destination(1), canary.destination(99)}
	d.Serve([]conf.DatagramListener{l})
	for round := range 3 {
		for n := range 20 {
			text := fmt.Sprintf("%d/%d", round, n)
			if got := mustExchange(t, proxytest.DialUDP(t, "127.0.0.1", l.Number), text); got != "dns-stable 1 "+text {
				t.Errorf("got %q", got)
			}
		}
		c.Step(probePause)
	}
	refused := testutil.ToFloat64(d.metrics.sessions.WithLabelValues("dns-canary", "502"))
	if refused == 0 || refused > 3 {
		t.Errorf("%g sessions were refused, want one at most after each pause", refused)
	}
	if lost := testutil.ToFloat64(d.metrics.lost); lost != 0 {
		t.Errorf("%g datagrams are lost", lost)
	}
	canary.address.Port = int(gone)
	l.Port.Destinations = []traffic.Destination{stable.destination(1), canary.destination(99)}
	d.Serve([]conf.DatagramListener{l})
	reached := 0
	for range 50 {
		if strings.HasPrefix(mustExchange(t, proxytest.DialUDP(t, "127.0.0.1", l.Number), "?"), "dns-canary") {
			reached++
		}
	}
	if reached < 40 {
		t.Errorf("%d of 50 sessions went to the canary, whose weight is 99 %%", reached)
	}
}

// TestSessionsEndWhileTheirFirstAnswersCome has far more clients than sessions, so that
// each session ends about when its backend answers.
func TestSessionsEndWhileTheirFirstAnswersCome(t *testing.T) {
	stable := listenUDP(t, "dns-stable")
	d, _, l := heldPort(t, stable.destination(1))
	few := d.ports[l.Sockets[0]].sessions
	few.mu.Lock()
	few.max = 2
	few.mu.Unlock()
	clients := make([]net.Conn, 64)
	for i := range clients {
		clients[i] = proxytest.DialUDP(t, "127.0.0.1", l.Number)
	}
	for range 200 {
		for _, conn := range clients {
			if _, err := conn.Write([]byte("?")); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What comes while the socket has no room is lost, so a client sends again.
	err := os.ErrDeadlineExceeded
	buffer := make([]byte, maxDatagram)
	for range 300 {
		if _, err := clients[0].Write([]byte("still there")); err != nil {
			t.Fatal(err)
		}
		if err := clients[0].SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err = clients[0].Read(buffer); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	if err != nil {
		t.Errorf("no session answers any more: %v", err)
	}
}

// What is sent to a backend without a pause before it refuses goes elsewhere too.
func TestWhatWasSentDuringAProbeGoesElsewhere(t *testing.T) {
	stable, canary := listenUDP(t, "dns-stable"), listenUDP(t, "dns-canary")
	canary.address.Port = int(proxytest.FreePort(t))
	d, _, l := heldPort(t, stable.destination(1))
	mustExchange(t, proxytest.DialUDP(t, "127.0.0.1", l.Number), "?")
	l.Port.Destinations = []traffic.Destination{stable.destination(1), canary.destination(1 << 20)}
	d.Serve([]conf.DatagramListener{l})
	conn := proxytest.DialUDP(t, "127.0.0.1", l.Number)
	for n := range 5 {
		if _, err := conn.Write([]byte{byte('a' + n)}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	buffer := make([]byte, maxDatagram)
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		got = append(got, string(buffer[:n]))
	}
	want := "dns-stable 1 a, dns-stable 2 b, dns-stable 3 c, dns-stable 4 d, dns-stable 5 e"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}
