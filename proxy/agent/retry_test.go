// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// blinking is a backend that listens for one request, and then does not until it is told that
// a request was refused, and some time more.
func blinking(t *testing.T) (b *backend, refused chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b = &backend{service: "web-blinking", address: l.Addr().(*net.TCPAddr)}
	refused, answered := make(chan struct{}, 1), make(chan struct{}, 1)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "hello")
		select {
		case answered <- struct{}{}:
		default:
		}
	})}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			go func() { _ = server.Serve(l) }()
			select {
			case <-t.Context().Done():
				return
			case <-answered:
			}
			_ = l.Close()
			select {
			case <-t.Context().Done():
				return
			case <-refused:
			}
			// As long as all attempts of some requests take.
			for begun, d := time.Now(), time.Duration(rand.IntN(2000))*time.Microsecond; time.Since(begun) < d; { //nolint:gosec // it guards nothing
			}
			if l, err = net.Listen("tcp", b.address.String()); err != nil {
				return
			}
		}
	}()
	return b, refused
}

// maxTries is how often nginx sends a request that is refused.
const maxTries = 3

// TestARequestThatIsAnsweredAtAnotherAttemptHasItsStatus has the first attempts of some requests
// refused, and the next one answered: clients must not see that there was more than one.
func TestARequestThatIsAnsweredAtAnotherAttemptHasItsStatus(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	b, refused := blinking(t)
	r.want(t, traffic.ProtocolHTTP, b.destination(1))
	later, broken := 0, 0
	for n := 0; later < 5; n++ {
		if n == 20_000 {
			t.Fatalf("of %d requests %d were answered at another attempt than the first: the test shows nothing", n, later)
		}
		before := r.log.count("Connection refused")
		response, err := http.Get(r.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close() // it was read
		if err != nil {
			t.Fatal(err)
		}
		if response.Header.Get("X-Serin-Proxy-Error") != "" {
			proxytest.Eventually(t, "the log has all attempts", func() bool {
				return r.log.count("Connection refused")-before == maxTries || r.log.count("while reading response header") > broken
			})
			broken = r.log.count("while reading response header")
			select {
			case refused <- struct{}{}:
			default:
			}
			continue
		}
		if response.StatusCode != http.StatusOK || string(body) != "hello" {
			t.Fatalf("got %s %q", response.Status, body)
		}
		if r.log.count("Connection refused") > before {
			later++
		}
	}
}
