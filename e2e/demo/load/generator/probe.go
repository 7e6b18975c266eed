// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"context"
	"net"
	"net/url"
	"time"
)

// lookupPause is the time between two attempts to find the address of a server.
const lookupPause = 100 * time.Millisecond

// runProbes opens a connection to a server every few milliseconds, and ends it at once: a
// moment without a server that accepts is found however short it is. The name is looked up
// only once: the address of a Service stays.
func (g *Generator) runProbes(ctx context.Context, target string, into *Counter) {
	address, ok := g.addressOf(ctx, target)
	if !ok {
		return
	}
	g.repeat(ctx, g.config.ProbeEvery, func(ctx context.Context) {
		started, number := g.clock.Now(), into.begin()
		o := probe(ctx, address, g.config.Timeout)
		o.latency = g.clock.Since(started)
		into.finish(g.clock.Now(), number, o)
	})
}

// addressOf is the IP address and port of a URL. It is false when ctx ends before it is found.
func (g *Generator) addressOf(ctx context.Context, target string) (string, bool) {
	u, err := url.Parse(target)
	if err != nil {
		return "", false
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	for {
		if found, err := net.DefaultResolver.LookupHost(ctx, u.Hostname()); err == nil {
			return net.JoinHostPort(found[0], port), true
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-g.clock.After(lookupPause):
		}
	}
}

// probe opens a connection and resets it, which leaves nothing behind on either side: a
// connection that is closed keeps its port for a minute.
func probe(ctx context.Context, address string, timeout time.Duration) outcome {
	dialer := &net.Dialer{Timeout: timeout}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return outcome{kind: kindOfError(err), detail: err.Error()}
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else it is closed like others
	}
	_ = connection.Close() // nothing was sent that could be lost
	return outcome{kind: KindOK, opened: 1}
}
