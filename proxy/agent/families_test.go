// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// serveAt serves HTTP of both versions at an address, with a name as the answer.
func serveAt(t *testing.T, service, address string) *backend {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Protocols: &http.Protocols{},
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, service) }),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go server.Serve(l) //nolint:errcheck // ends with the test
	t.Cleanup(func() { _ = server.Close() })
	return &backend{service: service, address: l.Addr().(*net.TCPAddr)}
}

// Clients and backends may be of either family of addresses, whatever the other is.
func TestBothFamiliesOfAddressesAreServed(t *testing.T) {
	t.Parallel()
	for _, protocol := range []traffic.Protocol{traffic.ProtocolHTTP, traffic.ProtocolHTTP2, traffic.ProtocolTCP} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			r := startRig(t, rigOptions{})
			four, six := serveAt(t, "web-four", "127.0.0.1:0"), serveAt(t, "web-six", "[::1]:0")
			client := http.DefaultClient
			if protocol == traffic.ProtocolHTTP2 {
				client = clearHTTP2(t)
			}
			for _, step := range []struct {
				four, six int32
				want      string
			}{{1, 0, "web-four"}, {0, 1, "web-six"}} {
				r.want(t, protocol, four.destination(step.four), six.destination(step.six))
				client.CloseIdleConnections()
				for _, host := range []string{"127.0.0.1", "[::1]"} {
					response, err := client.Get(fmt.Sprintf("http://%s:%d/", host, r.port))
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(response.Body)
					if err != nil || string(body) != step.want {
						t.Errorf("over %s: got %s %q %v, want %s", host, response.Status, body, err, step.want)
					}
					if err := response.Body.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TLS is passed on unread: the client speaks with the backend's own certificate, and
// they agree on HTTP/2 between themselves.
func TestTLSPassesUnread(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s", r.Proto, r.TLS.ServerName)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	b := &backend{service: "web-tls", address: server.Listener.Addr().(*net.TCPAddr)}
	r.want(t, traffic.ProtocolTCP, b.destination(1))
	client := server.Client()
	transport := client.Transport.(*http.Transport)
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", r.port))
	}
	response, err := client.Get("https://example.com/") // a name of the server's certificate
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "HTTP/2.0 example.com" || response.TLS.Version < tls.VersionTLS12 {
		t.Errorf("got %q %v", body, err)
	}
}

func TestConnectionsAreCountedWhenTheyEnd(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := listenTCP(t, "db-stable"), listenTCP(t, "db-canary")
	for _, step := range []struct{ stable, canary int32 }{{1, 0}, {0, 1}} {
		r.want(t, traffic.ProtocolTCP, stable.destination(step.stable), canary.destination(step.canary))
		for range 10 {
			say(t, r, "hello")
		}
	}
	gone := listenTCP(t, "db-gone")
	gone.address.Port = int(proxytest.FreePort(t))
	r.agent.Dial = func(context.Context, string, string) (net.Conn, error) { c, _ := net.Pipe(); return c, nil }
	r.want(t, traffic.ProtocolTCP, gone.destination(1))
	if got, err := io.ReadAll(dial(t, r)); len(got) > 0 || err != nil {
		t.Errorf("got %q %v, want the end", got, err)
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"db-stable": {"200": 10}, "db-canary": {"200": 10}, "db-gone": {"502": 1}}
	if diff := cmp.Diff(want, r.counter(t, "serin_proxy_connections_total")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
