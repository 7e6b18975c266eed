// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// shutdownLimit bounds how long answers in progress may take once the server closes.
	shutdownLimit = 10 * time.Second
	// headerLimit bounds how long a client may take to send its headers.
	headerLimit = 10 * time.Second
	// streamLimit is how long an answer may take at most, streamPause the time between two
	// parts of it.
	streamLimit = time.Minute
	streamPause = 100 * time.Millisecond
	// forwardedFor is the header by which an HTTP proxy says for whom it asks. The answer repeats
	// it, so that the client can tell whether it was led through one.
	forwardedFor = "X-Forwarded-For"
)

// app answers requests.
type app struct {
	config config
	clock  clock.Clock
	// draw returns a number in [0,1): below failShare, an answer is an error.
	draw func() float64

	draining atomic.Bool
	answers  atomic.Int64
}

// answer is the body of a response.
type answer struct {
	Version string `json:"version"`
	Pod     string `json:"pod"`
	Message string `json:"message"`
	Count   int64  `json:"count"`
}

// handler serves /healthz, long answers at /stream, and answers every other path.
func (a *app) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", a.serveHealth)
	mux.HandleFunc("/stream", a.serveStream)
	mux.HandleFunc("/", a.serveAnswer)
	return mux
}

// serveHealth is the readiness probe: not ready as soon as the app is told to stop.
func (a *app) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if a.draining.Load() {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (a *app) serveAnswer(w http.ResponseWriter, r *http.Request) {
	if !a.wait(r.Context()) {
		return // the client went away
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Version", a.config.version)
	if clients := r.Header.Get(forwardedFor); clients != "" {
		header.Set(forwardedFor, clients)
	}
	if a.draining.Load() {
		// The client opens its next connection to a pod that stays. Closing idle
		// connections instead would race with requests that are on their way.
		header.Set("Connection", "close")
	}
	body := answer{Version: a.config.version, Pod: a.config.pod, Message: "Hello!", Count: a.answers.Add(1)}
	if a.draw() < a.config.failShare {
		body.Message = "This version fails now and then."
		w.WriteHeader(http.StatusInternalServerError)
	}
	// An error here is the client's connection: there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// serveStream answers with a dot every tenth of a second, for as long as the request asks by
// "for", at most a minute. It never fails.
func (a *app) serveStream(w http.ResponseWriter, r *http.Request) {
	length, err := time.ParseDuration(r.FormValue("for"))
	if err != nil || length < 0 || length > streamLimit {
		http.Error(w, "for: ask for a time such as 8s, at most "+streamLimit.String(), http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Version", a.config.version)
	if a.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	for ends := a.clock.Now().Add(length); a.clock.Now().Before(ends); {
		if _, err := w.Write([]byte(".")); err != nil || http.NewResponseController(w).Flush() != nil {
			return // the client went away
		}
		select {
		case <-r.Context().Done():
			return
		case <-a.clock.After(streamPause):
		}
	}
}

// wait takes the configured latency and tells whether the client is still there.
func (a *app) wait(ctx context.Context) bool {
	if a.config.latency == 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-a.clock.After(a.config.latency):
		return true
	}
}

// serve answers on the listener until ctx is done, then drains: it turns not
// ready, goes on serving for the configured time while the endpoints of the
// Service are updated, and stops once the answers in progress are sent.
func (a *app) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: a.handler(), ReadHeaderTimeout: headerLimit}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	a.draining.Store(true)
	<-a.clock.After(a.config.drain)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return fmt.Errorf("stop within %s: %w", shutdownLimit, err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return nil
}
