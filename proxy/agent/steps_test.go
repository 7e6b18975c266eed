// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// TestNoRequestIsLostWhileWeightsChange sends about a thousand requests a second
// while the weights change twenty times, and then stops the agent under load.
func TestNoRequestIsLostWhileWeightsChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{drain: time.Second})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	r.want(t, traffic.ProtocolHTTP, stable.destination(100), canary.destination(0))
	finish, _ := startLoads(t, r.url("/path"), 5)
	for step := range int32(20) {
		awaitRequests(t, 60, stable, canary)
		r.want(t, traffic.ProtocolHTTP, stable.destination(100-5*step), canary.destination(5*step))
	}
	total := answered(t, finish())
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"web-stable": stable.counts(), "web-canary": canary.counts()}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("counts differ from what the backends answered (-want +got):\n%s", diff)
	}
	if got := stable.counts()["200"] + canary.counts()["200"]; got != total {
		t.Errorf("the backends answered %d requests, the clients got %d answers", got, total)
	}
	if total < 1000 {
		t.Errorf("only %d requests were sent; the test proves little", total)
	}
}

// TestNoRequestIsLostWhileBackendsChange changes the backends, which takes a
// reload. A reload closes idle client connections: without Settle, some of the
// POSTs that are on their way at that moment are lost.
func TestNoRequestIsLostWhileBackendsChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{settle: 500 * time.Millisecond})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	r.want(t, traffic.ProtocolHTTP, stable.destination(100))
	finish, _ := startLoads(t, r.url("/path"), 5)
	for range 3 {
		awaitRequests(t, 200, stable, canary)
		r.want(t, traffic.ProtocolHTTP, stable.destination(100), canary.destination(100))
		r.want(t, traffic.ProtocolHTTP, stable.destination(100))
	}
	total := answered(t, finish())
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"web-stable": stable.counts(), "web-canary": canary.counts()}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("counts differ from what the backends answered (-want +got):\n%s", diff)
	}
	if total < 500 {
		t.Errorf("only %d requests were sent; the test proves little", total)
	}
}

// TestNoRequestIsLostWhileStopping stops the agent under load. As in a cluster,
// it gets no new connections once it is known not to be ready, while those that are
// there go on being used until an answer asks to close them.
func TestNoRequestIsLostWhileStopping(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{drain: 5 * time.Second})
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(30 * time.Millisecond)
		_, _ = io.WriteString(w, "web-stable")
	})
	stable := startBackend(t, "web-stable", slow)
	r.want(t, traffic.ProtocolHTTP, stable.destination(100))
	finish, elsewhere := startLoads(t, r.url("/path"), 5)
	awaitRequests(t, 120, stable)
	r.stop()
	proxytest.Eventually(t, "the agent is not ready while it drains", func() bool {
		code, _ := get(t, "http://"+r.status+"/readyz")
		return code == http.StatusServiceUnavailable
	})
	awaitRequests(t, 40, stable) // it serves new connections until all know that it leaves
	elsewhere.Store(true)
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, l := range finish() {
		total += l.answers["200"]
		for _, err := range l.failures {
			if !errors.Is(err, errElsewhere) {
				t.Errorf("%s: %v", l, err)
			}
		}
	}
	if got := r.requests(t)["web-stable"]["200"]; got != total || total < 100 {
		t.Errorf("counted %d requests, the clients got %d answers; want the same, and at least 100", got, total)
	}
}
