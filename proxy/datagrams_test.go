// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx"
)

// listenUDP answers each datagram with a name, how many the session has sent, and
// what was sent.
func listenUDP(t *testing.T, service, address string) *backend {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, maxDatagram)
		seen := map[string]int{}
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			seen[from.String()]++
			_, _ = conn.WriteTo(fmt.Appendf(nil, "%s %d %s", service, seen[from.String()], buffer[:n]), from)
		}
	}()
	udp := conn.LocalAddr().(*net.UDPAddr)
	return &backend{service: service, address: &net.TCPAddr{IP: udp.IP, Port: udp.Port}}
}

// dialUDP opens a client of the rig's port.
func dialUDP(t *testing.T, host string, port int32) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// exchange sends a datagram and returns the answer to it.
func exchange(conn net.Conn, text string) (string, error) {
	if _, err := conn.Write([]byte(text)); err != nil {
		return "", err
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	buffer := make([]byte, maxDatagram)
	n, err := conn.Read(buffer)
	return string(buffer[:n]), err
}

func mustExchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	answer, err := exchange(conn, text)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestDatagramsPassInBothDirections(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			r := startRig(t, rigOptions{})
			r.want(t, traffic.ProtocolUDP, listenUDP(t, "dns-stable", net.JoinHostPort(host, "0")).destination(1))
			conn := dialUDP(t, host, r.port)
			for i, text := range []string{"", "one", strings.Repeat("x", 60000)} {
				if got, want := mustExchange(t, conn, text), fmt.Sprintf("dns-stable %d %s", i+1, text); got != want {
					t.Errorf("got %.30q…, %d bytes; want %.30q…", got, len(got), want)
				}
			}
		})
	}
}

// A session stays where it began while anybody talks, whatever the weights become; new
// ones go where they should at once. When it was silent, its next datagram is the first
// of another one, since a backend without weight is about to go.
func TestASessionStaysWhereItBegan(t *testing.T) {
	stable, canary := listenUDP(t, "dns-stable", "127.0.0.1:0"), listenUDP(t, "dns-canary", "127.0.0.1:0")
	d, c, l := heldPort(t, stable.destination(1), canary.destination(0))
	conn := dialUDP(t, "127.0.0.1", l.Number)
	mustExchange(t, conn, "")
	for i, destinations := range [][]traffic.Destination{
		{stable.destination(0), canary.destination(1)}, {canary.destination(1)},
	} {
		l.Port.Destinations = destinations
		d.serve([]nginx.DatagramListener{l})
		c.Step(leaveIdle - 1)
		if got, want := mustExchange(t, conn, "again"), fmt.Sprintf("dns-stable %d again", i+2); got != want {
			t.Errorf("the session got %q, want %q", got, want)
		}
		if got := mustExchange(t, dialUDP(t, "127.0.0.1", l.Number), "new"); got != "dns-canary 1 new" {
			t.Errorf("a new session got %q", got)
		}
	}
	c.Step(leaveIdle)
	if got := mustExchange(t, conn, "after a silence"); got != "dns-canary 1 after a silence" {
		t.Errorf("the session got %q", got)
	}
}

// TestNoDatagramIsLostWhileBackendsChange asks and waits for the answer, with a new
// session each time, while weights change and a TCP port of the same number makes
// nginx reload.
func TestNoDatagramIsLostWhileBackendsChange(t *testing.T) {
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
	asked := make([]int, 4)
	for i := range asked {
		wg.Go(func() {
			for ctx.Err() == nil {
				conn := dialUDP(t, "127.0.0.1", r.port)
				if _, err := exchange(conn, "?"); err != nil {
					t.Errorf("after %d answers: %v", asked[i], err)
					return
				}
				_ = conn.Close()
				asked[i]++
			}
		})
	}
	for step := range int32(10) {
		r.wantSplit(t, both(10*step, 1+step%2))
		if got := say(t, r, "hello"); got != "dns-tcp hello" {
			t.Errorf("over TCP: %q", got)
		}
	}
	cancel()
	wg.Wait()
	total := 0
	for _, n := range asked {
		total += n
	}
	if total < 200 {
		t.Errorf("only %d were asked; the test proves little", total)
	}
}

func TestSharesOfSessionsAreAsTheWeights(t *testing.T) {
	r := startRig(t, rigOptions{})
	stable, canary := listenUDP(t, "dns-stable", "127.0.0.1:0"), listenUDP(t, "dns-canary", "127.0.0.1:0")
	r.want(t, traffic.ProtocolUDP, stable.destination(93), canary.destination(7))
	const n = 2000
	k := 0
	for range n { // the clients stay open: another on the port of one of them would be the same session
		conn := dialUDP(t, "127.0.0.1", r.port)
		if strings.HasPrefix(mustExchange(t, conn, "?"), "dns-canary") {
			k++
		}
	}
	if !within(n, k, 0.07) {
		t.Errorf("%d of %d sessions went to the canary; 7 %% do not give that in 99.9 %% of all cases", k, n)
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"dns-stable": {"200": n - k}, "dns-canary": {"200": k}}
	eventually(t, "every session is counted", func() bool { return cmp.Equal(want, r.counter(t, "serin_proxy_sessions_total")) })
}

// udpListener listens on one family of addresses.
func udpListener(number int32, destinations ...traffic.Destination) nginx.DatagramListener {
	return nginx.DatagramListener{
		Listener: nginx.Listener{Number: number, Port: traffic.Port{Protocol: traffic.ProtocolUDP, Destinations: destinations}},
		Sockets:  []nginx.Socket{{Network: "udp", Address: fmt.Sprintf("0.0.0.0:%d", number)}},
	}
}

// heldPort is an open UDP port with a clock that stands still.
func heldPort(t *testing.T, destinations ...traffic.Destination) (*datagrams, *clocktesting.FakeClock, nginx.DatagramListener) {
	t.Helper()
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	d := newDatagrams(newSockets(fdstore.None{}, listen), c, testr.New(t), newMetrics("", c))
	l := udpListener(freePort(t), destinations...)
	if err := d.open([]nginx.DatagramListener{l}); err != nil {
		t.Fatal(err)
	}
	d.serve([]nginx.DatagramListener{l})
	t.Cleanup(d.stop)
	return d, c, l
}

func TestAnIdleSessionIsForgotten(t *testing.T) {
	stable := listenUDP(t, "dns-stable", "127.0.0.1:0")
	d, c, l := heldPort(t, stable.destination(1))
	conn, busy := dialUDP(t, "127.0.0.1", l.Number), dialUDP(t, "127.0.0.1", l.Number)
	mustExchange(t, conn, "a")
	c.Step(sessionIdle)
	mustExchange(t, busy, "a")
	eventually(t, "somebody waits for the next sweep", c.HasWaiters)
	c.Step(sweepInterval)
	eventually(t, "the idle one is forgotten", func() bool { return len(d.ports[l.Sockets[0]].sessions.all()) == 1 })
	if got := mustExchange(t, busy, "b"); got != "dns-stable 2 b" {
		t.Errorf("the busy one got %q", got)
	}
	if got := mustExchange(t, conn, "b"); got != "dns-stable 1 b" {
		t.Errorf("the idle one got %q, want the first answer of another session", got)
	}
}

func TestTheSessionThatWasSilentForLongestMakesRoom(t *testing.T) {
	s := newSessions(2)
	one := func(port uint16) *session {
		return &session{client: netip.AddrPortFrom(netip.IPv6Loopback(), port)}
	}
	first, second, third := one(1), one(2), one(3)
	for _, n := range []*session{first, second} {
		if s.add(n) != nil {
			t.Fatal("there was room")
		}
	}
	if s.find(first.client) != first {
		t.Fatal("the first is not found")
	}
	if got := s.add(third); got != second {
		t.Errorf("%v makes room, want the second", got)
	}
	s.remove(second)
	if got := s.all(); len(got) != 2 || got[0] != first || got[1] != third {
		t.Errorf("left are %v", got)
	}
}

func TestASessionWhoseBackendIsGoneBeginsAnew(t *testing.T) {
	gone := listenUDP(t, "dns-stable", "127.0.0.1:0")
	gone.address.Port = int(freePort(t)) // nobody is there
	d, _, l := heldPort(t, gone.destination(1))
	conn := dialUDP(t, "127.0.0.1", l.Number)
	if _, err := conn.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	ended := d.metrics.sessions.WithLabelValues("dns-stable", "502")
	eventually(t, "the session is counted as refused", func() bool { return testutil.ToFloat64(ended) == 1 })
	there := listenUDP(t, "dns-canary", "127.0.0.1:0")
	l.Port.Destinations = []traffic.Destination{there.destination(1)}
	d.serve([]nginx.DatagramListener{l})
	if got := mustExchange(t, conn, "b"); got != "dns-canary 1 b" {
		t.Errorf("got %q", got)
	}
}

func TestADatagramThatNobodyCanTakeIsCounted(t *testing.T) {
	d, _, l := heldPort(t)
	if _, err := dialUDP(t, "127.0.0.1", l.Number).Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is counted as lost", func() bool { return testutil.ToFloat64(d.metrics.lostDatagrams) == 1 })
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	taken, err := net.ListenPacket("udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // ends with the test
	d, _, l := heldPort(t)
	err = d.open([]nginx.DatagramListener{l, udpListener(int32(taken.LocalAddr().(*net.UDPAddr).Port))})
	if err == nil || !strings.Contains(err.Error(), taken.LocalAddr().String()) {
		t.Errorf("error %v", err)
	}
}

func TestAPortThatIsNotWantedAnyMoreIsClosed(t *testing.T) {
	d, _, l := heldPort(t)
	d.serve(nil)
	if len(d.ports)+len(d.sockets.open) != 0 {
		t.Errorf("open are %v, %v", d.ports, d.sockets.open)
	}
	eventually(t, "somebody else can have it", func() bool {
		conn, err := net.ListenPacket("udp4", fmt.Sprintf(":%d", l.Number))
		return err == nil && conn.Close() == nil
	})
}

func TestADrawIsExact(t *testing.T) {
	d := makeDraw(traffic.Port{Destinations: []traffic.Destination{
		{Service: "a", Address: "10.0.0.1", Port: 53, Weight: 3},
		{Service: "b", Address: "fd00::1", Port: 53},
		{Service: "c", Address: "fd00::2", Port: 53, Weight: 2},
	}})
	var got strings.Builder
	for n := range d.total {
		got.WriteString(d.pick(n).service)
	}
	if got.String() != "aaacc" {
		t.Errorf("got %q, want aaacc", got.String())
	}
}
