// SPDX-License-Identifier: Apache-2.0

package udp

import (
	"container/list"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// session is a client of a UDP port with its backend.
type session struct {
	client  netip.AddrPort
	service string
	// address of the backend.
	address netip.AddrPort
	// backend is a socket of its own, so that kube-proxy keeps the session on one pod
	// and the answers are known by where they arrive.
	backend *net.UDPConn
	// last datagram in either direction, in nanoseconds of Unix time.
	last atomic.Int64
	// refused is whether the backend's host said that no backend is there.
	refused atomic.Bool
	ended   atomic.Bool
	// proven is whether the backend has answered.
	proven atomic.Bool
	// probeEnds is when the probe of the backend ends that the session is; zero where it is
	// none. The port's lock guards it, and kept: what was sent meanwhile.
	probeEnds time.Time
	kept      [][]byte
	place     *list.Element
}

// maxKept is how many datagrams of a session that is a probe are kept.
const maxKept = 8

// probing reports whether what was sent may still be refused. When it may not, nothing has
// to be kept any more.
func (s *session) probing(now time.Time) bool {
	if now.Before(s.probeEnds) && !s.proven.Load() {
		return true
	}
	s.kept = nil
	return false
}

func (s *session) touch(now time.Time) { s.last.Store(now.UnixNano()) }

// sessions are those of one port, by client, at most max of them.
type sessions struct {
	max      int
	mu       sync.Mutex
	byClient map[netip.AddrPort]*session
	// order is by when the client was last heard of, the longest ago first.
	order *list.List
}

func newSessions(most int) *sessions {
	return &sessions{max: most, byClient: map[netip.AddrPort]*session{}, order: list.New()}
}

// find is the session of a client, or nil.
func (s *sessions) find(client netip.AddrPort) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byClient[client]
	if found != nil {
		s.order.MoveToBack(found.place)
	}
	return found
}

// add remembers a session. It returns the one to end for it, if there are too many.
func (s *sessions) add(n *session) (oldest *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order.Len() >= s.max {
		oldest, _ = s.order.Front().Value.(*session)
	}
	n.place = s.order.PushBack(n)
	s.byClient[n.client] = n
	return oldest
}

// remove forgets a session.
func (s *sessions) remove(gone *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order.Remove(gone.place)
	if s.byClient[gone.client] == gone {
		delete(s.byClient, gone.client)
	}
}

// all sessions, those first whose client was silent for longest.
func (s *sessions) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*session
	for e := s.order.Front(); e != nil; e = e.Next() {
		if found, ok := e.Value.(*session); ok {
			out = append(out, found)
		}
	}
	return out
}

// idleSince are the sessions without a datagram after a moment.
func (s *sessions) idleSince(moment time.Time) []*session {
	var idle []*session
	for _, one := range s.all() {
		if one.last.Load() < moment.UnixNano() {
			idle = append(idle, one)
		}
	}
	return idle
}

// buffers are for one datagram each.
var buffers = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// receiveEach waits until a connected socket has datagrams, and hands over each of
// those that are there. An idle session so holds no buffer, of which each is as large
// as the largest datagram.
func receiveEach(conn *net.UDPConn, take func([]byte)) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	received := false
	err = raw.Read(func(fd uintptr) bool {
		buffer, _ := buffers.Get().(*[maxDatagram]byte)
		defer buffers.Put(buffer)
		for {
			n, err := syscall.Read(int(fd), buffer[:])
			switch err {
			case nil:
				received = true
				take(buffer[:n])
			case syscall.EINTR:
			case syscall.EAGAIN:
				return received
			default:
				failure = err
				return true
			}
		}
	})
	if err != nil {
		return err
	}
	return failure
}

// randomBelow draws a number from 0 to n-1.
func randomBelow(n int64) int64 {
	return rand.Int64N(n) //nolint:gosec // who shares a backend with whom is no secret
}
