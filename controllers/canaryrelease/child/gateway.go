// SPDX-License-Identifier: Apache-2.0

package child

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// passed are the headers of requests that reach the API server. What would say who acts is
// not among them: a process can't choose its account.
var passed = []string{"Accept", "Accept-Encoding", "Content-Type", "Content-Length", "User-Agent"}

// gateway hands requests on to the API server that the configuration leads to, with its
// credentials, as far as the guard lets them.
func gateway(config *rest.Config, guard *releases.Guard) (http.Handler, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return refusing{&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header = http.Header{}
			for _, name := range passed {
				if values := r.In.Header.Values(name); len(values) > 0 {
					r.Out.Header[name] = values
				}
			}
		},
		Transport:     guard.Through(transport),
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
	}}, nil
}

// refusing closes the body of a request once it is refused. The process stops writing it then, as
// clients of HTTP/2 do, and the proxy would wait for the rest before it ends the answer, for which
// the process waits.
type refusing struct{ handler http.Handler }

// ServeHTTP implements http.Handler.
func (h refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.handler.ServeHTTP(refusal{w, r.Body}, r)
}

type refusal struct {
	http.ResponseWriter
	body io.Closer
}

// WriteHeader implements http.ResponseWriter.
func (r refusal) WriteHeader(status int) {
	r.ResponseWriter.WriteHeader(status)
	if status >= http.StatusMultipleChoices {
		_ = r.body.Close() // nothing is read of it any more
	}
}

// Unwrap is for http.ResponseController.
func (r refusal) Unwrap() http.ResponseWriter { return r.ResponseWriter }

const (
	maxHeader  = 64 << 10
	maxStreams = 64
)

// serve answers requests on one connection until it is closed.
func serve(connection net.Conn, handler http.Handler) (stop func()) {
	server := &http.Server{ //nolint:gosec // its one client is a process that is ended in time
		Handler: handler, Protocols: new(http.Protocols), MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(&only{connection: connection, closed: make(chan struct{})}) })
	return func() {
		_ = server.Close()
		_ = connection.Close()
		done.Wait()
	}
}

// only is a listener with one connection.
type only struct {
	connection net.Conn
	closed     chan struct{}
	once, end  sync.Once
}

func (o *only) Accept() (net.Conn, error) {
	var c net.Conn
	o.once.Do(func() { c = o.connection })
	if c != nil {
		return c, nil
	}
	<-o.closed
	return nil, net.ErrClosed
}

func (o *only) Close() error {
	o.end.Do(func() { close(o.closed) })
	return nil
}

func (o *only) Addr() net.Addr { return o.connection.LocalAddr() }
