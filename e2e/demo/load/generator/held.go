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
		o := h.call(g.config.Target)
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

func (h *held) call(target string) (o outcome) {
	if h.connection == nil {
		connection, err := net.DialTimeout("tcp", h.address, h.timeout)
		if err != nil {
			return outcome{kind: kindOfError(err), detail: err.Error()}
		}
		h.connection, h.answers, o.opened = connection, bufio.NewReader(connection), 1
	}
	response, body, err := h.exchange(target)
	if err != nil {
		h.end()
		o.kind, o.detail = kindOfError(err), "on a connection that was held: "+err.Error()
		return o
	}
	o.version, o.status = response.Header.Get("X-Version"), response.StatusCode
	if o.kind = kindOfAnswer(o.status, o.version); o.kind != KindOK {
		o.detail = string(body[:min(len(body), detailLimit)])
	}
	if response.Close {
		h.end()
	}
	return o
}

func (h *held) exchange(target string) (*http.Response, []byte, error) {
	request, err := http.NewRequest(http.MethodGet, target, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	if err := h.connection.SetDeadline(time.Now().Add(h.timeout)); err != nil {
		return nil, nil, err
	}
	if err := request.Write(h.connection); err != nil {
		return nil, nil, err
	}
	response, err := http.ReadResponse(h.answers, request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	return response, body, err
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
