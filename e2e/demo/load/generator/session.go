// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"k8s.io/utils/clock"
)

const (
	// dialLimit bounds how long a connection may take to open.
	dialLimit = 30 * time.Second
	// bodyLimit bounds how much of an answer is read.
	bodyLimit = 1 << 20
	// detailLimit is how much of a failed answer a report shows.
	detailLimit = 200
)

// session is one client that keeps at most one connection open. It is used by
// one request at a time.
type session struct {
	transport *http.Transport
	// left is the number of requests that it is still good for.
	left int
}

func newSession(life int) *session {
	dialer := &net.Dialer{Timeout: dialLimit}
	return &session{left: life, transport: &http.Transport{
		DialContext:         dialer.DialContext,
		MaxConnsPerHost:     1,
		MaxIdleConnsPerHost: 1,
		DisableCompression:  true,
	}}
}

// close ends the connection once no request uses it.
func (s *session) close() { s.transport.CloseIdleConnections() }

// call sends one request and waits for the end of its answer.
func (s *session) call(ctx context.Context, target string, clk clock.PassiveClock) outcome {
	s.left--
	started := clk.Now()
	connections := &connectionCount{}
	o := s.roundTrip(httptrace.WithClientTrace(ctx, connections.trace()), target)
	o.latency = clk.Since(started)
	o.retries, o.opened = max(connections.used-1, 0), connections.opened
	return o
}

func (s *session) roundTrip(ctx context.Context, target string) outcome {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return outcome{kind: KindOther, detail: err.Error()}
	}
	request.Header.Set("User-Agent", "serin-demo-load")
	// The transport is called without a client: a redirect is an answer.
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return outcome{kind: kindOfError(err), detail: err.Error()}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	version := response.Header.Get("X-Version")
	if err != nil {
		return outcome{kind: kindOfError(err), version: version, status: response.StatusCode, detail: "read the answer: " + err.Error()}
	}
	o := outcome{kind: kindOfAnswer(response.StatusCode, version), version: version, status: response.StatusCode}
	o.direct = o.kind.answered() && response.Header.Get("X-Forwarded-For") == ""
	if o.kind != KindOK {
		o.detail = string(body[:min(len(body), detailLimit)])
	}
	return o
}

// connectionCount counts the connections that net/http used for one request.
// More than one means that it repeated the request.
type connectionCount struct{ used, opened int64 }

func (c *connectionCount) trace() *httptrace.ClientTrace {
	// GotConn is called by the goroutine of the request, one call after another.
	return &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		c.used++
		if !info.Reused {
			c.opened++
		}
	}}
}
