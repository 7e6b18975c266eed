// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

// connections are those that clients have opened.
type connections struct {
	net.Listener
	opened chan net.Conn
}

func (c connections) Accept() (net.Conn, error) {
	connection, open := <-c.opened
	if !open {
		return nil, net.ErrClosed
	}
	return connection, nil
}

func (c connections) Close() error {
	close(c.opened)
	return nil
}

func (c connections) Addr() net.Addr { return &net.TCPAddr{} }

// A browser opens connections that it sends nothing on until it has a request.
func TestAConnectionWithoutARequestIsClosedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		listener, ended := connections{opened: make(chan net.Conn)}, make(chan error, 1)
		go func() { ended <- Serve(ctx, listener, http.NotFoundHandler()) }()
		server, browser := net.Pipe()
		listener.opened <- server
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the dashboard ended: %v", err)
		}
		if _, err := browser.Read(make([]byte, 1)); err == nil {
			t.Error("the connection is open")
		}
	})
}
