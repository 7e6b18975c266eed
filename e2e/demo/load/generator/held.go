// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// streamsAtOnce is how many long answers are under way at any time.
const streamsAtOnce = 4

// streamTarget asks the demo's app for an answer that takes that long.
func streamTarget(target string, length time.Duration) string {
	return target + "/stream?for=" + length.String()
}

// callStream reads one long answer to its end.
func (g *Generator) callStream(ctx context.Context) {
	length := g.config.StreamFor
	number := g.streams.begin()
	now, o := g.callOnce(ctx, streamTarget(g.config.Target, length), length+g.config.Timeout)
	o.latency = max(o.latency-length, 0) // what it took beyond its length
	g.streams.finish(now, number, o)
}

// runHeld keeps one connection open and sends a request on it now and then. It opens another
// one only when the server has asked for that (Connection: close), or when the connection
// broke, which is counted as a failure. net/http would open another one without a word.
func (g *Generator) runHeld(ctx context.Context) {
	address, ok := g.addressOf(ctx, g.config.Target)
	if !ok {
		return
	}
	h := &held{address: address, timeout: g.config.Timeout}
	defer h.end()
	ticker := g.clock.NewTicker(g.config.HoldEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		started, number := g.clock.Now(), g.held.begin()
		o := h.call(context.WithoutCancel(ctx), g.config.Target) // what is under way at the end is counted
		o.latency = g.clock.Since(started)
		g.held.finish(g.clock.Now(), number, o)
		g.held.use(h.local())
	}
}

// held is a client that keeps its connection.
type held struct {
	address    string
	timeout    time.Duration
	connection net.Conn
	answers    *bufio.Reader
}

func (h *held) call(ctx context.Context, target string) (o outcome) {
	if h.connection == nil {
		connection, err := (&net.Dialer{Timeout: h.timeout}).DialContext(ctx, "tcp", h.address)
		if err != nil {
			return outcome{kind: kindOfError(err), detail: err.Error()}
		}
		h.connection, h.answers, o.opened = connection, bufio.NewReader(connection), 1
	}
	answer, err := h.exchange(ctx, target)
	if err != nil {
		h.end()
		o.kind, o.detail = kindOfError(err), "on a connection that was held: "+err.Error()
		return o
	}
	o.version, o.status = answer.version, answer.status
	if o.kind = kindOfAnswer(o.status, o.version); o.kind != KindOK {
		o.detail = string(answer.body[:min(len(answer.body), detailLimit)])
	}
	if answer.last {
		h.end()
	}
	return o
}

// heldAnswer is an answer on a connection that is held.
type heldAnswer struct {
	version string
	status  int
	body    []byte
	// last is whether the server closes the connection after it.
	last bool
}

func (h *held) exchange(ctx context.Context, target string) (a heldAnswer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return a, err
	}
	if err := h.connection.SetDeadline(time.Now().Add(h.timeout)); err != nil { //nolint:forbidigo // it is kept by the kernel's clock
		return a, err
	}
	if err := request.Write(h.connection); err != nil {
		return a, err
	}
	response, err := http.ReadResponse(h.answers, request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a = heldAnswer{version: response.Header.Get("X-Version"), status: response.StatusCode, last: response.Close}
	a.body, err = io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	return a, err
}

func (h *held) end() {
	if h.connection != nil {
		_ = h.connection.Close() // nothing is under way on it
	}
	h.connection = nil
}

func (h *held) local() string {
	if h.connection == nil {
		return ""
	}
	return h.connection.LocalAddr().String()
}
