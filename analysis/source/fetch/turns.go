// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// turns has answers decoded one at a time. One of a megabyte takes fifty times that in memory,
// and an endpoint may answer so to many requests at once.
type turns struct {
	once sync.Once
	free chan struct{}
}

// take waits for a turn until the context ends, and returns what ends the turn.
func (t *turns) take(ctx context.Context) (end func(), err error) {
	t.once.Do(func() { t.free = make(chan struct{}, 1) })
	select {
	case t.free <- struct{}{}:
		return func() { <-t.free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Client is for a library that sends requests and decodes the answers by itself, in one
// goroutine, and for one measurement. An answer is read to its end first, and then decoded in a
// turn, which the next request or done ends.
func (c *Caller) Client() (client *http.Client, done func()) {
	t := &inTurns{caller: c, next: c.HTTP.Transport, end: func() {}}
	of := *c.HTTP
	of.Transport = t
	return &of, func() { t.end() }
}

type inTurns struct {
	caller *Caller
	next   http.RoundTripper
	end    func()
}

// RoundTrip implements http.RoundTripper.
func (t *inTurns) RoundTrip(r *http.Request) (*http.Response, error) {
	t.end()
	t.end = func() {}
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	end, err := t.caller.turns.take(r.Context())
	if err != nil {
		return nil, err
	}
	t.end = sync.OnceFunc(end)
	return response, nil
}
