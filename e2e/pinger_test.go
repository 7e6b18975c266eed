// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// pingEvery is the time between two pings of one pinger.
	pingEvery = 20 * time.Millisecond
	// pingLimit bounds a ping; a datagram that was not answered by then is lost.
	pingLimit = 3 * time.Second
	// pingsShown are the failures that are told one by one.
	pingsShown = 10
)

// ping sends something to an address and checks what comes back.
type ping func(ctx context.Context, address string, n int) error

// pinger sends pings at a constant pace, each on a connection of its own, until the test ends.
type pinger struct {
	t       loud
	address string
	stop    func()
	done    chan struct{}

	mu   sync.Mutex
	sent int
	// late are those that were not answered in time, refused those whose connection was, broken
	// those whose connection ended otherwise, and failed all others.
	late, refused, broken, failed []string
}

func newPinger(t loud, address string, send ping) *pinger {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	p := &pinger{t: t, address: address, stop: stop, done: make(chan struct{})}
	t.Cleanup(stop)
	go p.run(ctx, send)
	return p
}

func (p *pinger) run(ctx context.Context, send ping) {
	defer close(p.done)
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	var flying sync.WaitGroup
	defer flying.Wait()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		flying.Go(func() {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingLimit)
			defer cancel()
			begun := time.Now()
			p.note(begun, send(limited, p.address, n))
		})
	}
}

func (p *pinger) note(begun time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	text := fmt.Sprintf("%s: %v", begun.UTC().Format(timeOfDay), err)
	var network net.Error
	switch {
	case err == nil:
	case errors.As(err, &network) && network.Timeout():
		p.late = append(p.late, text)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPERM): // by this machine's own rules
		p.refused = append(p.refused, text)
	case errors.As(err, &network), errors.Is(err, io.EOF):
		p.broken = append(p.broken, text)
	default:
		p.failed = append(p.failed, text)
	}
}

// require ends the load, fails the test when anything was lost, and says what it does not
// judge: pings that kube-proxy may have refused and, on a machine that was hindered, those that
// were not answered in time, and the few whose connections it may have broken.
func (p *pinger) require(h hindrance) (notJudged string) {
	p.t.Helper()
	p.stop()
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.Logf("%d pings to %s: %d had a wrong answer, of %d the connection was refused, of %d it ended, %d were not answered in time",
		p.sent, p.address, len(p.failed), len(p.refused), len(p.broken), len(p.late))
	if p.sent == 0 {
		p.t.Errorf("nothing was sent to %s", p.address)
	}
	lost := p.failed
	var reasons []string
	judge := func(pings []string, why string) {
		if why == "" {
			lost = append(lost, pings...)
		} else if len(pings) > 0 {
			p.t.Logf("not judged, since %s: %s", why, pings)
			reasons = append(reasons, fmt.Sprintf("%d of %d pings to %s failed, which is not judged, since %s", len(pings), p.sent, p.address, why))
		}
	}
	delayed, broke, refused := "", "", ""
	late, others := int64(len(p.late)), int64(len(p.refused)+len(p.broken))
	if h.delayed(late, int64(p.sent)) {
		delayed = h.why
	} else {
		late = 0
	}
	if h.broke(others, late) {
		broke, refused = h.why, h.why
	} else if len(p.refused) <= refusedAtOnce {
		refused = "it may be kube-proxy's exchange of rules"
	}
	judge(p.late, delayed)
	judge(p.refused, refused)
	judge(p.broken, broke)
	for _, text := range lost[:min(len(lost), pingsShown)] {
		p.t.Errorf("a ping to %s failed: %s", p.address, text)
	}
	return strings.Join(reasons, "; ")
}

// pingRedis asks Redis for a PONG on a new connection.
func pingRedis(ctx context.Context, address string, _ int) error {
	answer, err := exchange(ctx, &net.Dialer{}, "tcp", address, []byte("PING\r\n"))
	if err == nil && string(answer) != "+PONG\r\n" {
		err = fmt.Errorf("the answer is %q", answer)
	}
	return err
}

// A pinger of datagrams has so many ports of its own, which Linux gives to nobody, and uses
// each again after 200 s only: a node keeps what comes from one port with one pod for up to two
// minutes, even when that has stopped, so that what is sent from it again may get lost without
// Serin too.
const (
	firstPort     = 10000
	portsOfPinger = 10000
)

// pingEchoFrom has each datagram echoed, behind the version of the server, from the next
// of some ports.
func pingEchoFrom(first int) ping {
	return func(ctx context.Context, address string, n int) error {
		text := fmt.Appendf(nil, "ping %d", n)
		dialer := &net.Dialer{LocalAddr: &net.UDPAddr{Port: first + n%portsOfPinger}}
		answer, err := exchange(ctx, dialer, "udp", address, text)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil // somebody listens there
		}
		if err == nil && !bytes.HasSuffix(answer, append([]byte(" "), text...)) {
			err = fmt.Errorf("the answer is %q", answer)
		}
		return err
	}
}

func exchange(ctx context.Context, dialer *net.Dialer, network, address string, text []byte) ([]byte, error) {
	connection, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	defer connection.Close() //nolint:errcheck // everything was read
	if limit, ok := ctx.Deadline(); ok {
		if err := connection.SetDeadline(limit); err != nil {
			return nil, err
		}
	}
	if _, err := connection.Write(text); err != nil {
		return nil, err
	}
	answer := make([]byte, 1024)
	read, err := connection.Read(answer)
	return answer[:read], err
}
