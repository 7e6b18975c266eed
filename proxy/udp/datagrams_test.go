// SPDX-License-Identifier: Apache-2.0

package udp

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/proxy/sockets"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// backend answers datagrams.
type backend struct {
	service string
	address *net.UDPAddr
}

func listenUDP(t *testing.T, service string) *backend {
	t.Helper()
	return &backend{service, proxytest.ListenUDP(t, service, "127.0.0.1:0")}
}

func (b *backend) destination(weight int32) traffic.Destination {
	return traffic.Destination{Service: b.service, Address: b.address.IP.String(), Port: int32(b.address.Port), Weight: weight}
}

func mustExchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	answer, err := proxytest.Exchange(conn, text)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// A session stays where it began while datagrams come, whatever the weights become; new
// ones go where they should at once. When it was silent, its next datagram is the first
// of another one, since a backend without weight is about to go.
func TestASessionStaysWhereItBegan(t *testing.T) {
	stable, canary := listenUDP(t, "dns-stable"), listenUDP(t, "dns-canary")
	d, c, l := heldPort(t, stable.destination(1), canary.destination(0))
	conn := proxytest.DialUDP(t, "127.0.0.1", l.Number)
	mustExchange(t, conn, "")
	for i, destinations := range [][]traffic.Destination{
		{stable.destination(0), canary.destination(1)}, {canary.destination(1)},
	} {
		l.Port.Destinations = destinations
		d.Serve([]conf.DatagramListener{l})
		c.Step(leaveIdle - 1)
		if got, want := mustExchange(t, conn, "again"), fmt.Sprintf("dns-stable %d again", i+2); got != want {
			t.Errorf("the session got %q, want %q", got, want)
		}
		if got := mustExchange(t, proxytest.DialUDP(t, "127.0.0.1", l.Number), "new"); got != "dns-canary 1 new" {
			t.Errorf("a new session got %q", got)
		}
	}
	c.Step(leaveIdle)
	if got := mustExchange(t, conn, "after a silence"); got != "dns-canary 1 after a silence" {
		t.Errorf("the session got %q", got)
	}
}

// udpListener listens on one family of addresses.
func udpListener(number int32, destinations ...traffic.Destination) conf.DatagramListener {
	return conf.DatagramListener{
		Listener: conf.Listener{Number: number, Port: traffic.Port{Protocol: traffic.ProtocolUDP, Destinations: destinations}},
		Sockets:  []conf.Socket{{Network: "udp", Address: fmt.Sprintf("0.0.0.0:%d", number)}},
	}
}

// heldPort is an open UDP port with a clock that stands still.
func heldPort(t *testing.T, destinations ...traffic.Destination) (*Ports, *clocktesting.FakeClock, conf.DatagramListener) {
	t.Helper()
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	d := New(sockets.New(fdstore.None{}, sockets.Listen), c, testr.New(t))
	l := udpListener(proxytest.FreePort(t), destinations...)
	if err := d.Open([]conf.DatagramListener{l}); err != nil {
		t.Fatal(err)
	}
	d.Serve([]conf.DatagramListener{l})
	t.Cleanup(d.Stop)
	return d, c, l
}

func TestAnIdleSessionIsForgotten(t *testing.T) {
	stable := listenUDP(t, "dns-stable")
	d, c, l := heldPort(t, stable.destination(1))
	conn, busy := proxytest.DialUDP(t, "127.0.0.1", l.Number), proxytest.DialUDP(t, "127.0.0.1", l.Number)
	mustExchange(t, conn, "a")
	c.Step(sessionIdle)
	mustExchange(t, busy, "a")
	proxytest.Eventually(t, "the next sweep is waited for", c.HasWaiters)
	c.Step(sweepInterval)
	proxytest.Eventually(t, "the idle one is forgotten", func() bool { return len(d.ports[l.Sockets[0]].sessions.all()) == 1 })
	if got := mustExchange(t, busy, "b"); got != "dns-stable 2 b" {
		t.Errorf("the busy one got %q", got)
	}
	if got := mustExchange(t, conn, "b"); got != "dns-stable 1 b" {
		t.Errorf("the idle one got %q, want the first answer of another session", got)
	}
}

// What looks for idle sessions may look before the first datagram of a session is sent.
func TestASessionThatBeginsIsNotIdle(t *testing.T) {
	d, c, l := heldPort(t, listenUDP(t, "dns-stable").destination(1))
	p := d.ports[l.Sockets[0]]
	s, err := p.begin(netip.MustParseAddrPort("127.0.0.1:9"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.end(s)
	if idle := p.sessions.idleSince(c.Now().Add(-sessionIdle)); len(idle) > 0 {
		t.Error("it is taken for one that was silent for long, and ended")
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
	gone := listenUDP(t, "dns-stable")
	gone.address.Port = int(proxytest.FreePort(t)) // no backend is there
	d, _, l := heldPort(t, gone.destination(1))
	conn := proxytest.DialUDP(t, "127.0.0.1", l.Number)
	if _, err := conn.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	ended := d.metrics.sessions.WithLabelValues("dns-stable", "502")
	proxytest.Eventually(t, "the session is counted as refused", func() bool { return testutil.ToFloat64(ended) == 1 })
	there := listenUDP(t, "dns-canary")
	l.Port.Destinations = []traffic.Destination{there.destination(1)}
	d.Serve([]conf.DatagramListener{l})
	if got := mustExchange(t, conn, "b"); got != "dns-canary 1 b" {
		t.Errorf("got %q", got)
	}
}

func TestADatagramThatNoBackendTakesIsCounted(t *testing.T) {
	d, _, l := heldPort(t)
	if _, err := proxytest.DialUDP(t, "127.0.0.1", l.Number).Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	proxytest.Eventually(t, "it is counted as lost", func() bool { return testutil.ToFloat64(d.metrics.lost) == 1 })
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	taken, err := net.ListenPacket("udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // ends with the test
	d, _, l := heldPort(t)
	err = d.Open([]conf.DatagramListener{l, udpListener(int32(taken.LocalAddr().(*net.UDPAddr).Port))})
	if err == nil || !strings.Contains(err.Error(), taken.LocalAddr().String()) {
		t.Errorf("error %v", err)
	}
}

func TestAPortThatIsNotWantedAnyMoreIsClosed(t *testing.T) {
	d, _, l := heldPort(t)
	d.Serve(nil)
	if len(d.ports) != 0 || d.sockets.Inherited() {
		t.Errorf("open are %v, %v", d.ports, d.sockets)
	}
	proxytest.Eventually(t, "another process can have it", func() bool {
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
