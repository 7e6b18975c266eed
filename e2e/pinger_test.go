// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/judgement"
)

const (
	// pingEvery is the time between two pings of one pinger.
	pingEvery = 20 * time.Millisecond
	// pingLimit bounds a ping; a datagram that was not answered by then is lost.
	pingLimit = 30 * time.Second
)

// ping sends something to an address and checks what comes back.
type ping func(ctx context.Context, address string, n int) error

// pinger sends pings at a constant pace, each on a connection of its own, until the attempt ends.
type pinger struct {
	address string
	stop    func()
	done    chan struct{}
	counter generator.Counter
}

func newPinger(a *attempt, address string, send ping) *pinger {
	ctx, stop := context.WithCancel(context.WithoutCancel(a.Context()))
	p := &pinger{address: address, stop: stop, done: make(chan struct{})}
	a.Cleanup(stop)
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
			if err := send(limited, p.address, n); !errors.Is(err, syscall.EADDRINUSE) { // else a program of this machine has the port
				p.note(begun, err)
			}
		})
	}
}

// note counts a ping.
func (p *pinger) note(begun time.Time, err error) {
	kind, detail, now := generator.KindOK, "", time.Now()
	if err != nil {
		kind, detail = kindOfPing(err), err.Error()
	}
	p.counter.Count(now, kind, now.Sub(begun), detail)
}

func kindOfPing(err error) generator.Kind {
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return generator.KindTimeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPERM): // by this machine's own rules
		return generator.KindRefused
	case errors.As(err, &network), errors.Is(err, io.EOF):
		return generator.KindClosed
	default:
		return generator.KindOther // a wrong answer
	}
}

// end stops the pinger and returns what it counted.
func (p *pinger) end() generator.Series {
	p.stop()
	<-p.done
	return p.counter.Series()
}

// pingers are those of TCP and of UDP, each with one that does the same to the control.
type pingers struct{ tcp, tcpControl, udp, udpControl *pinger }

func (s *site) startPingers() pingers {
	s.t.Helper()
	return pingers{
		tcp:        newPinger(s.t, s.address("cache", 6379), pingRedis),
		tcpControl: newPinger(s.t, s.address(controlName, 80), pingHTTP),
		udp:        newPinger(s.t, s.address("echo", 53), pingEchoFrom(firstPort)),
		udpControl: newPinger(s.t, s.address(controlName, 53), pingEchoFrom(firstPort+portsOfPinger)),
	}
}

// addPings ends the pingers and has judged what they counted.
func (s *site) addPings(p pingers) {
	s.t.Helper()
	s.record.Pings = []judgement.Pings{
		{What: "connections to Redis", Target: p.tcp.end(), Control: p.tcpControl.end()},
		{What: "datagrams", Target: p.udp.end(), Control: p.udpControl.end()},
	}
	for _, pings := range s.record.Pings {
		s.t.Logf("%d %s, and %d to the control; refused, late or wrong were %v, and of the control %v",
			pings.Target.Requests, pings.What, pings.Control.Requests, pings.Target.Kinds, pings.Control.Kinds)
	}
}

// pingHTTP asks for an answer on a new connection.
func pingHTTP(ctx context.Context, address string, _ int) error {
	answer, err := exchange(ctx, &net.Dialer{}, "tcp", address, []byte("GET / HTTP/1.1\r\nHost: website\r\nConnection: close\r\n\r\n"))
	if err == nil && !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) {
		err = fmt.Errorf("the answer is %q", answer)
	}
	return err
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
