// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout bounds how long a browser may take to say what it wants, and mostHeaders
	// how much it may say.
	headerTimeout = 10 * time.Second
	mostHeaders   = 64 << 10
	// idleTimeout ends connections without requests.
	idleTimeout = 2 * time.Minute
	// endTimeout bounds the wait for answers when the server is stopped.
	endTimeout = 2 * time.Second
)

// Serve serves until the context is done, which ends all streams.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: mostHeaders, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) { // a browser opens connections before it has requests
		return server.Close()
	}
	return err
}
