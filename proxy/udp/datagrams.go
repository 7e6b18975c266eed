// SPDX-License-Identifier: Apache-2.0

package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/sockets"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

const (
	// sessionIdle is how long a session without a datagram in either direction is
	// remembered. Longer than the 30 s for which kube-proxy remembers one that was not
	// answered, and than what a client of DNS, QUIC or NTP waits for an answer.
	sessionIdle = time.Minute
	// sweepInterval is how often idle sessions are looked for.
	sweepInterval = 5 * time.Second
	// maxSessions of a port: each has a socket and some memory. When there are more,
	// the one that was silent for longest is forgotten.
	maxSessions = 4096
	// leaveIdle is how long a session without a datagram in either direction stays with a
	// backend that has no weight any more. Its pods are about to go, and to wait longer
	// would lose the client's next datagram with them.
	leaveIdle = time.Second
	// maxTries is how many backends a datagram is sent to that were not there.
	maxTries = 3
	// maxDatagram is more than a datagram can hold.
	maxDatagram = 1 << 16
	// readBuffer is for the datagrams that arrive while others are passed on.
	readBuffer = 4 << 20
)

// Ports splits the UDP ports of a split, session by session. A session is what
// one address and port of a client sends to one port; it stays with its backend.
//
// nginx could do it too, but one that is replaced drops the answers that its clients
// wait for, and weights of UDP would be in its configuration. Here new weights are live
// with the next session, and no client is cut off.
type Ports struct {
	sockets *sockets.Sockets
	clock   clock.WithTicker
	log     logr.Logger
	metrics metrics
	// ports that are open.
	ports map[conf.Socket]*port
	// received are the datagrams of clients so far.
	received atomic.Int64
}

// New makes Ports, none of which is open.
func New(s *sockets.Sockets, c clock.WithTicker, log logr.Logger) *Ports {
	return &Ports{sockets: s, clock: c, log: log, metrics: newMetrics(), ports: map[conf.Socket]*port{}}
}

// Open opens the ports that are not open yet. Datagrams wait in them until Serve.
func (d *Ports) Open(listeners []conf.DatagramListener) error {
	for _, l := range listeners {
		fds, err := d.sockets.Lend(l.Sockets)
		if err != nil {
			return err
		}
		for i, socket := range l.Sockets {
			if d.ports[socket] != nil {
				continue
			}
			conn, err := datagramConn(fds[i])
			if err != nil {
				return fmt.Errorf("listen on udp %s: %w", socket.Address, err)
			}
			d.ports[socket] = newPort(d, conn)
		}
	}
	return nil
}

// datagramConn is a connection of its own on a socket.
func datagramConn(fd int) (*net.UDPConn, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(own), "udp")
	conn, err := net.FilePacketConn(file)
	err = errors.Join(err, file.Close()) // conn has another
	if err != nil {
		return nil, err
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(errors.New("not a socket of UDP"), conn.Close())
	}
	_ = udp.SetReadBuffer(readBuffer) // or as much as the system lets
	return udp, nil
}

// Serve makes the weights of the listeners, which are open, live and closes what
// is no longer among them.
func (d *Ports) Serve(listeners []conf.DatagramListener) {
	wanted := map[conf.Socket]bool{}
	for _, l := range listeners {
		shares := makeDraw(l.Port)
		for _, socket := range l.Sockets {
			wanted[socket] = true
			d.ports[socket].serve(shares)
		}
	}
	for socket, port := range d.ports {
		if wanted[socket] {
			continue
		}
		if err := errors.Join(port.close(), d.sockets.Close(socket)); err != nil {
			d.log.Error(err, "Could not close a port", "address", socket.Address)
		}
		delete(d.ports, socket)
	}
}

// Received is how many datagrams clients have sent so far.
func (d *Ports) Received() int64 { return d.received.Load() }

// Stop closes all ports.
func (d *Ports) Stop() { d.Serve(nil) }

// port is one open UDP port.
type port struct {
	*Ports
	conn *net.UDPConn
	draw atomic.Pointer[draw]
	// begun is whether datagrams are read.
	begun    bool
	sessions *sessions
	outliers *outlierDetection
	done     chan struct{}
	// sending is held while a datagram of a client is passed on.
	sending sync.Mutex
}

func newPort(d *Ports, conn *net.UDPConn) *port {
	return &port{Ports: d, conn: conn, sessions: newSessions(maxSessions), outliers: newOutlierDetection(), done: make(chan struct{})}
}

func (p *port) serve(d *draw) {
	p.draw.Store(d)
	p.outliers.keep(d)
	if p.begun {
		return
	}
	p.begun = true
	go p.receive()
	go p.sweep()
}

func (p *port) close() error {
	close(p.done)
	return p.conn.Close()
}

func (p *port) closed() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// receive passes the clients' datagrams on until the port is closed, and then ends
// the sessions: nothing else begins one.
func (p *port) receive() {
	defer func() {
		p.sending.Lock()
		defer p.sending.Unlock()
		for _, s := range p.sessions.all() {
			p.end(s)
		}
	}()
	buffer := make([]byte, maxDatagram)
	for {
		n, client, err := p.conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // such as that an answer did not reach its client
		}
		p.received.Add(1)
		p.forward(client, buffer[:n])
	}
}

// Errors of a datagram that no backend can take.
var (
	errNoBackend = errors.New("no backend has weight for this port")
	errNoOther   = errors.New("the backend refused it, and no other one has weight for this port and answers")
)

// forward sends a client's datagram to the backend of its session.
func (p *port) forward(client netip.AddrPort, datagram []byte) {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.send(client, datagram, 1)
}

// send is forward to the backend of that many attempts.
func (p *port) send(client netip.AddrPort, datagram []byte, try int) {
	s := p.sessions.find(client)
	if s != nil && p.leaves(s) {
		p.end(s)
		s = nil
	}
	if s == nil {
		var err error
		if s, err = p.begin(client, try); err != nil {
			p.lose(err)
			return
		}
	}
	now := p.clock.Now()
	s.touch(now)
	probing := s.probing(now)
	_, err := s.backend.Write(datagram)
	switch {
	case refused(err) || errors.Is(err, net.ErrClosed):
		// An earlier datagram was refused, or the session was idle until now: this one was
		// not sent.
		s.kept = append(s.kept, datagram)
		p.reroute(s, err, try)
	case err != nil: // it is too long for the way, for instance
		p.lose(err)
	case probing && len(s.kept) < maxKept:
		s.kept = append(s.kept, slices.Clone(datagram))
	}
}

func (p *port) lose(err error) {
	p.metrics.lost.Inc()
	p.log.V(1).Info("A datagram is lost", "reason", err.Error())
}

// leaves reports whether a session's next datagram goes elsewhere: its backend has no
// weight any more, and no datagram came for a while.
func (p *port) leaves(s *session) bool {
	return !p.draw.Load().has(s.address) && p.clock.Now().UnixNano()-s.last.Load() >= int64(leaveIdle)
}

// reroute ends a session whose backend is not there, and sends elsewhere what is known
// not to have arrived.
func (p *port) reroute(s *session, err error, try int) {
	if refused(err) {
		p.outliers.refuse(s.address, p.clock.Now())
		s.refused.Store(true)
	}
	p.end(s)
	for _, datagram := range s.kept {
		if try == maxTries {
			p.lose(err)
			continue
		}
		p.send(s.client, datagram, try+1)
	}
	s.kept = nil
}

// begin draws a backend for a client.
func (p *port) begin(client netip.AddrPort, try int) (*session, error) {
	d := p.draw.Load()
	if d.total == 0 || p.closed() {
		return nil, errNoBackend
	}
	now := p.clock.Now()
	to, probes, admitted := p.outliers.choose(d, now, randomBelow)
	if try > 1 && !admitted {
		return nil, errNoOther
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to.address))
	if err != nil {
		return nil, err
	}
	s := &session{client: client, service: to.service, address: to.address, backend: conn}
	s.touch(now) // before sweep sees it
	if probes {
		s.probeEnds = now.Add(probeTime)
	}
	if oldest := p.sessions.add(s); oldest != nil {
		p.end(oldest)
	}
	p.metrics.open.WithLabelValues(s.service).Inc()
	go p.answer(s)
	return s, nil
}

// refused reports whether an error says that no backend is there.
func refused(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH)
}

// answer passes the backend's datagrams to the client until the session ends.
func (p *port) answer(s *session) {
	for {
		err := receiveEach(s.backend, func(datagram []byte) {
			s.touch(p.clock.Now())
			p.prove(s)
			if _, err := p.conn.WriteToUDPAddrPort(datagram, s.client); err != nil && !errors.Is(err, net.ErrClosed) {
				p.metrics.lost.Inc()
			}
		})
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			p.sending.Lock()
			defer p.sending.Unlock()
			if !s.probing(p.clock.Now()) && refused(err) {
				p.lose(err) // what exactly was refused is not known
			}
			p.reroute(s, err, 1)
			return
		}
	}
}

// prove notes the first answer of a session: what it sent has arrived. It takes no lock of
// the port: the goroutine that has it may be closing the session, which waits for this answer.
func (p *port) prove(s *session) {
	if s.proven.Swap(true) {
		return
	}
	p.outliers.answered(s.address)
}

// end forgets a session. One that has ended already is left alone.
func (p *port) end(s *session) {
	if !s.ended.CompareAndSwap(false, true) {
		return
	}
	p.sessions.remove(s)
	_ = s.backend.Close() // only frees the socket
	code := "200"
	if s.refused.Load() {
		code = "502"
	}
	p.metrics.sessions.WithLabelValues(s.service, code).Inc()
	p.metrics.open.WithLabelValues(s.service).Dec()
}

// sweep ends idle sessions.
func (p *port) sweep() {
	ticker := p.clock.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C():
			for _, s := range p.sessions.idleSince(p.clock.Now().Add(-sessionIdle)) {
				p.end(s)
			}
		}
	}
}
