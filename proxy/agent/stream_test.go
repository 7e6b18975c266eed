// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

// say connects, sends a line, closes its side, and returns what comes back.
func say(t *testing.T, r *rig, text string) string {
	t.Helper()
	conn := dial(t, r)
	defer conn.Close() //nolint:errcheck // only to be quick
	write(t, conn, text)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// listenTCP answers each connection, once the other side is closed, with a name
// and what was sent.
func listenTCP(t *testing.T, service string) *backend {
	t.Helper()
	b := listenRaw(t, func(conn net.Conn) {
		text, err := io.ReadAll(conn)
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, service+" "+string(text))
	})
	b.service = service
	return b
}

func TestBytesPassInBothDirections(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable := listenTCP(t, "db-stable")
	canary := listenTCP(t, "db-canary")
	text := strings.Repeat("x", 1<<20)
	for _, step := range []struct {
		stable, canary int32
		want           string
	}{{1, 0, "db-stable "}, {0, 1, "db-canary "}, {1, 0, "db-stable "}} {
		r.want(t, traffic.ProtocolTCP, stable.destination(step.stable), canary.destination(step.canary))
		for range 20 {
			if got := say(t, r, text); got != step.want+text {
				t.Fatalf("got %.20q…, %d bytes; want %q and what was sent", got, len(got), step.want)
			}
		}
	}
}

func TestConnectionsOutliveAChangeOfWeights(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable := listenTCP(t, "db-stable")
	canary := listenTCP(t, "db-canary")
	r.want(t, traffic.ProtocolTCP, stable.destination(1), canary.destination(0))
	conn := dial(t, r)
	write(t, conn, "one")
	for range 3 {
		r.want(t, traffic.ProtocolTCP, stable.destination(0), canary.destination(1))
		r.want(t, traffic.ProtocolTCP, stable.destination(1), canary.destination(0))
	}
	write(t, conn, " two")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "db-stable one two" {
		t.Errorf("got %q %v", got, err)
	}
}

func TestAConnectionWithoutABackendIsClosed(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable := listenTCP(t, "db-stable")
	r.want(t, traffic.ProtocolTCP, stable.destination(0))
	conn := dial(t, r)
	if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
		t.Errorf("got %q %v, want the end", got, err)
	}
}

// within reports whether k of n is what a share p gives: further off than five standard
// deviations is chance in one of a million runs.
func within(n, k int, p float64) bool {
	return math.Abs(float64(k)-float64(n)*p) <= 5*math.Sqrt(float64(n)*p*(1-p))+1
}

func TestSharesAreAsTheWeights(t *testing.T) {
	t.Parallel()
	for _, protocol := range []traffic.Protocol{traffic.ProtocolHTTP, traffic.ProtocolTCP} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			r := startRig(t, rigOptions{})
			stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
			r.want(t, protocol, stable.destination(93), canary.destination(7))
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: protocol == traffic.ProtocolTCP}}
			const n = 5000
			for range n {
				response, err := client.Get(r.url("/"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					t.Fatal(err)
				}
				if err := response.Body.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if k := canary.counts()["200"]; !within(n, k, 0.07) {
				t.Errorf("%d of %d requests went to the canary; 7 %% do not give that", k, n)
			} else {
				t.Logf("%d of %d", k, n)
			}
		})
	}
}
