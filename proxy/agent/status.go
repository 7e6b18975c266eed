// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/proxy/fdstore"
)

// statusServer serves probes and metrics.
type statusServer struct {
	// ready is "" when requests are served as they should be, or else the reason
	// why they are not.
	ready atomic.Pointer[string]
	// served is what is served.
	served atomic.Pointer[confirmation.Served]
	// scraped gets a value after each answer with metrics.
	scraped chan struct{}
	http    *http.Server
}

func newStatusServer(metrics prometheus.Gatherer, first confirmation.Served, busy *atomic.Int32) *statusServer {
	s := &statusServer{scraped: make(chan struct{}, 1)}
	s.report(first)
	s.setReady("starting")
	metricsHandler := promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET "+confirmation.Path, func(w http.ResponseWriter, _ *http.Request) {
		served := *s.served.Load()
		served.Busy = busy.Load()
		confirmation.Write(w, served)
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		metricsHandler.ServeHTTP(w, r)
		select {
		case s.scraped <- struct{}{}:
		default:
		}
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	return s
}

// setReady says why requests are not served as they should be; "" when they are.
func (s *statusServer) setReady(reason string) { s.ready.Store(&reason) }

func (s *statusServer) readyz(w http.ResponseWriter, _ *http.Request) {
	if reason := *s.ready.Load(); reason != "" {
		writeText(w, http.StatusServiceUnavailable, reason+"\n")
		return
	}
	writeText(w, http.StatusOK, "ok\n")
}

// report says what is served from now on.
func (s *statusServer) report(served confirmation.Served) { s.served.Store(&served) }

func writeText(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body)) // the client is gone
}

// run serves until the context ends.
func (s *statusServer) run(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() }) // Serve returns the error
	defer stop()
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// awaitScrape waits until metrics have been fetched once more. When none ever
// fetched them it does not wait.
func (s *statusServer) awaitScrape(timeout <-chan time.Time) {
	select {
	case <-s.scraped: // an earlier one: a Prometheus does scrape
	default:
		return
	}
	select {
	case <-s.scraped:
	case <-timeout:
	}
}

// statusName is the name under which the listener of the probes and metrics is kept.
const statusName = "status"

// StatusListener is the listener of the probes and metrics: the one that a previous
// agent left, so that who asks in between waits instead of being refused, or else
// one that listens on the address.
func StatusListener(ctx context.Context, store fdstore.Store, address string) (net.Listener, error) {
	if fd, ok := store.Kept()[statusName]; ok {
		file := os.NewFile(uintptr(fd), statusName)
		defer file.Close() //nolint:errcheck // the listener has one of its own
		return net.FileListener(file)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("a listener of TCP is a %T", l)
	}
	raw, err := tcp.SyscallConn()
	if err == nil {
		var kerr error
		err = errors.Join(raw.Control(func(fd uintptr) { kerr = store.Keep(statusName, int(fd)) }), kerr)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
