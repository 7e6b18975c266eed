// SPDX-License-Identifier: Apache-2.0

package udp

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// probeTime is how long a refusal may take. It comes from the proxy's own node, where
	// the address of a Service becomes that of a pod, or from the pod's, at once; but on a
	// busy node the proxy may be late to learn of it.
	probeTime = time.Second
	// probePause is how long a backend that refused gets no session. Linux tells one peer
	// of a refusal about once a second (icmp_ratelimit), so that another probe any earlier
	// may look like a success.
	probePause = time.Second
	// maxRefusals are how many sessions a backend may refuse that was there, without an
	// answer to any other meanwhile. One of many pods that stops refuses its own.
	maxRefusals = 3
)

// outlierDetection finds out which backends of a UDP port answer, before many sessions go there.
//
// A backend gets its weight as soon as the API says that it has a ready pod, but the
// node that this proxy runs on may learn of it a second later: until then, it refuses
// what is sent to the backend's Service. A port of UDP does not say that it is there, so
// a datagram of a client is what finds out. The first session of a backend is its probe.
// While that goes on, and for a time after a refusal, other sessions go elsewhere, if
// another backend has weight; what was refused is sent elsewhere too.
//
//	backend | until                           | other sessions
//	--------+---------------------------------+---------------
//	new     | a session is drawn for it       |
//	probed  | an answer, or probeTime: proven | go elsewhere
//	proven  | it loses its weight, or refuses | come
//	        | maxRefusals without an answer   |
//	refused | probePause: new                 | go elsewhere
type outlierDetection struct {
	mu sync.Mutex
	// known backends that are not new.
	known map[netip.AddrPort]*probe
}

// probe is what is known of one backend.
type probe struct {
	proven bool
	// until is when the probe ends, or the pause after a refusal.
	until   time.Time
	refused bool
	// refusals of a proven one since its last answer to a new session.
	refusals int
}

func newOutlierDetection() *outlierDetection {
	return &outlierDetection{known: map[netip.AddrPort]*probe{}}
}

// choose draws the backend of a session with a function that draws a number from 0 to
// below n, and says whether the session is the backend's probe. Where no backend admits a
// session, it is the one that was drawn first.
func (t *outlierDetection) choose(d *draw, now time.Time, below func(n int64) int64) (to drawn, probes, admitted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to = d.pick(below(d.total))
	if t.admits(to.address, now) {
		return to, t.begin(to.address, now), true
	}
	others, before := &draw{}, int64(0)
	for _, b := range d.backends {
		if t.admits(b.address, now) {
			others.add(b.service, b.address, b.until-before)
		}
		before = b.until
	}
	if others.total == 0 {
		return to, false, false
	}
	to = others.pick(below(others.total))
	return to, t.begin(to.address, now), true
}

// admits reports whether a session may go to a backend.
func (t *outlierDetection) admits(backend netip.AddrPort, now time.Time) bool {
	known := t.known[backend]
	return known == nil || known.proven || !now.Before(known.until)
}

// begin notes that a session goes to a backend that admits it, and reports whether that
// is its probe.
func (t *outlierDetection) begin(backend netip.AddrPort, now time.Time) bool {
	known := t.known[backend]
	switch {
	case known == nil || known.refused:
		t.known[backend] = &probe{until: now.Add(probeTime)}
		return true
	default: // it did not refuse in time
		known.proven = true
		return false
	}
}

// answered notes that a backend is there.
func (t *outlierDetection) answered(backend netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[backend]; known != nil && !known.refused {
		known.proven, known.refusals = true, 0
	}
}

// refuse notes that a session of a backend was refused.
func (t *outlierDetection) refuse(backend netip.AddrPort, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[backend]; known != nil && known.proven {
		if known.refusals++; known.refusals < maxRefusals {
			return
		}
	}
	t.known[backend] = &probe{refused: true, until: now.Add(probePause)}
}

// keep forgets the backends that are not in a draw any more.
func (t *outlierDetection) keep(d *draw) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for backend := range t.known {
		if !d.has(backend) {
			delete(t.known, backend)
		}
	}
}
