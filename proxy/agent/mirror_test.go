// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// mirrored is a split between stable and canary by weights, with copies to canary.
func (r *rig) mirrored(percent int32, stable, canary *backend, weights [2]int32) traffic.Split {
	copies := canary.destination(0)
	return traffic.Split{
		Mirror: &traffic.Mirror{Service: canary.service, Percent: percent},
		Ports: []traffic.Port{{
			Number: 80, TargetNumber: r.port, Protocol: traffic.ProtocolHTTP, Mirror: &copies,
			Destinations: []traffic.Destination{stable.destination(weights[0]), canary.destination(weights[1])},
		}},
	}
}

// recorder is a handler that remembers the requests it got, each as it arrived.
type recorder struct {
	mu       sync.Mutex
	requests []string
}

func (h *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dump, err := httputil.DumpRequest(r, true)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.mu.Lock()
	h.requests = append(h.requests, string(dump))
	h.mu.Unlock()
	_, _ = io.WriteString(w, "recorded")
}

func (h *recorder) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

func TestCopiesArriveAndUsersGetTheAnswersOfTheOtherBackend(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	canaryRequests := &recorder{}
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", canaryRequests)
	r.wantSplit(t, r.mirrored(100, stable, canary, [2]int32{1, 0}))
	conn := dial(t, r)
	requests := []string{
		"GET //a/%2e%2e/b%2Fc?x=%20&y HTTP/1.1\r\nHost: web.shop\r\nX-A: 1\r\nX-A: 2\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
		"PUT /f HTTP/1.1\r\nHost: web\r\nContent-Length: 5\r\n\r\n12345",
		"BREW /pot HTTP/1.1\r\nHost: web\r\n\r\n",
	}
	in := bufio.NewReader(conn)
	for _, request := range requests {
		write(t, conn, request)
		if response, body := readResponse(t, in); response.StatusCode != http.StatusOK || body != "web-stable" {
			t.Errorf("the user got %s %q", response.Status, body)
		}
	}
	proxytest.Eventually(t, "the copies arrive", func() bool { return len(canaryRequests.got()) == len(requests) })
	want := []string{
		"GET //a/%2e%2e/b%2Fc?x=%20&y HTTP/1.1\r\nHost: web.shop\r\nConnection: close\r\nX-A: 1\r\nX-A: 2\r\nX-Forwarded-For: 1.2.3.4, 127.0.0.1\r\nX-Serin-Mirrored: 1\r\n\r\n",
		"PUT /f HTTP/1.1\r\nHost: web\r\nConnection: close\r\nContent-Length: 5\r\nX-Forwarded-For: 127.0.0.1\r\nX-Serin-Mirrored: 1\r\n\r\n12345",
		"BREW /pot HTTP/1.1\r\nHost: web\r\nConnection: close\r\nX-Forwarded-For: 127.0.0.1\r\nX-Serin-Mirrored: 1\r\n\r\n",
	}
	got := canaryRequests.got()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
	proxytest.Eventually(t, "copies are counted apart", func() bool {
		return cmp.Equal(r.counter(t, "serin_proxy_mirrored_requests_total"), map[string]map[string]int{"web-canary": {"200": 3}}) &&
			cmp.Equal(r.requests(t), map[string]map[string]int{"web-stable": {"200": 3}})
	})
}

func TestAShareOfTheRequestsToOthersIsCopied(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	r.wantSplit(t, r.mirrored(30, stable, canary, [2]int32{75, 25}))
	const n = 2000
	answers := map[string]int{}
	for range n {
		answers[ask(t, "GET", r.url("/"))]++
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"web-stable": {"200": answers["web-stable"]}, "web-canary": {"200": answers["web-canary"]}}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("users' requests (-want +got):\n%s", diff)
	}
	copies := r.counter(t, "serin_proxy_mirrored_requests_total")["web-canary"]["200"]
	if total := canary.counts()["200"]; copies != total-answers["web-canary"] {
		t.Errorf("%d copies were counted, and the canary got %d requests, %d of them from users", copies, total, answers["web-canary"])
	}
	mean, p := float64(answers["web-stable"])*0.3, 0.3
	if off := math.Abs(float64(copies) - mean); off > 5*math.Sqrt(mean*(1-p)) {
		t.Errorf("%d of %d requests were copied, want about 30 %%", copies, answers["web-stable"])
	}
}

func TestCopiesOfALimitedSplit(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	split := r.mirrored(100, stable, canary, [2]int32{0, 1})
	unmatched := stable.destination(0)
	split.Limited, split.Ports[0].Default = true, &unmatched
	split.Matches = []traffic.Match{{Group: "g", Name: "beta", Headers: []traffic.Header{{Name: "x-beta", Regex: "1"}}}}
	r.wantSplit(t, split)
	if a, b := ask(t, "GET", r.url("/"), "X-Beta: 1"), ask(t, "GET", r.url("/")); a != "web-canary" || b != "web-stable" {
		t.Errorf("%s and %s answered", a, b)
	}
	one := map[string]int{"200": 1}
	proxytest.Eventually(t, "one of each kind is counted", func() bool {
		return cmp.Equal(r.requests(t), map[string]map[string]int{"web-canary": one}) &&
			cmp.Equal(r.counter(t, "serin_proxy_unmatched_requests_total"), map[string]map[string]int{"web-stable": one}) &&
			cmp.Equal(r.counter(t, "serin_proxy_mirrored_requests_total"), map[string]map[string]int{"web-canary": one})
	})
}

// TestWhatWouldHaveToBeReadWholeIsNotCopied sends long and endless bodies, which
// are to be passed on as they come.
func TestWhatWouldHaveToBeReadWholeIsNotCopied(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	canaryRequests := &recorder{}
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", canaryRequests)
	r.wantSplit(t, r.mirrored(100, stable, canary, [2]int32{1, 0}))
	post := func(body io.Reader) {
		t.Helper()
		response, err := http.Post(r.url("/"), "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != "web-stable" {
			t.Fatalf("got %q %v", got, err)
		}
	}
	long := strings.Repeat("b", 99_999)
	post(strings.NewReader(long + "b"))
	post(io.MultiReader(strings.NewReader("chunked")))
	post(strings.NewReader(long))
	proxytest.Eventually(t, "the longest body that is copied arrives", func() bool { return len(canaryRequests.got()) == 1 })
	if got := canaryRequests.got()[0]; !strings.HasSuffix(got, "\r\n\r\n"+long) {
		t.Errorf("the copy has %d bytes: %.300s", len(got), got)
	}
	proxytest.Eventually(t, "all are counted", func() bool { return r.requests(t)["web-stable"]["200"] == 3 })
}

// hang accepts connections and answers none until it is let go, when it closes them.
func hang(t *testing.T) (b *backend, letGo func()) {
	t.Helper()
	end := make(chan struct{})
	b = listenRaw(t, func(net.Conn) { <-end })
	b.service = "web-canary"
	return b, sync.OnceFunc(func() { close(end) })
}

// TestASlowMirrorSlowsNoUser has a canary that never answers. nginx holds a
// client's connection until the copies of its requests are done, so without the
// server in between, the second request of each client would wait.
func TestASlowMirrorSlowsNoUser(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable := startBackend(t, "web-stable", nil)
	canary, letGo := hang(t)
	t.Cleanup(letGo)
	r.wantSplit(t, r.mirrored(100, stable, canary, [2]int32{1, 0}))
	conn := dial(t, r)
	in := bufio.NewReader(conn)
	const n = 300
	for i := range n { // the copies hang until all are answered
		write(t, conn, fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: web\r\nContent-Length: 1\r\n\r\nx", i))
		if response, body := readResponse(t, in); response.StatusCode != http.StatusOK || body != "web-stable" || response.Close {
			t.Fatalf("request %d got %s %q, connection closed: %t", i, response.Status, body, response.Close)
		}
	}
	proxytest.Eventually(t, "what is too much is dropped and counted", func() bool {
		dropped := 0
		for _, m := range r.scrape(t)["serin_proxy_mirrored_requests_dropped_total"].GetMetric() {
			dropped += int(m.GetCounter().GetValue())
		}
		return dropped == n-128
	})
	letGo()
	proxytest.Eventually(t, "the copies that were on their way are counted as failed", func() bool {
		return r.counter(t, "serin_proxy_mirrored_requests_total")["web-canary"]["502"] == 128
	})
	if got := r.requests(t); !cmp.Equal(got, map[string]map[string]int{"web-stable": {"200": n}}) {
		t.Errorf("users' requests: %v", got)
	}
}

func TestAMirrorThatIsDownFailsNoUser(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stable, canary := startBackend(t, "web-stable", nil), &backend{service: "web-canary", address: l.Addr().(*net.TCPAddr)}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r.wantSplit(t, r.mirrored(100, stable, canary, [2]int32{1, 0}))
	for range 100 {
		if who := ask(t, "GET", r.url("/")); who != "web-stable" {
			t.Fatalf("%s answered", who)
		}
	}
	proxytest.Eventually(t, "the copies are counted as failed", func() bool {
		return cmp.Equal(r.counter(t, "serin_proxy_mirrored_requests_total"), map[string]map[string]int{"web-canary": {"502": 100}})
	})
	if n := r.log.count("Connection refused"); n > 0 {
		t.Errorf("the log tells %d times what the counts say", n)
	}
	if got := stable.counts()["200"]; got != 100 {
		t.Errorf("stable got %d requests for 100 of users", got)
	}
}

// TestNoRequestIsLostWhileMirroringBeginsAndEnds turns mirroring on and off under
// load, each by a reload.
func TestNoRequestIsLostWhileMirroringBeginsAndEnds(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{settle: 500 * time.Millisecond})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	r.want(t, traffic.ProtocolHTTP, stable.destination(1), canary.destination(0))
	finish, _ := startLoads(t, r.url("/path"), 3)
	for _, percent := range []int32{10, 50} {
		r.wantSplit(t, r.mirrored(percent, stable, canary, [2]int32{1, 0}))
	}
	r.want(t, traffic.ProtocolHTTP, stable.destination(1), canary.destination(0))
	total := answered(t, finish())
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[string]int{"web-stable": {"200": total}}, r.requests(t)); diff != "" {
		t.Errorf("users' requests (-want +got):\n%s", diff)
	}
	copies := r.counter(t, "serin_proxy_mirrored_requests_total")["web-canary"]["200"]
	if got := canary.counts()["200"]; got != copies || copies == 0 {
		t.Errorf("the canary got %d copies, and %d were counted; want as many, and more than 0", got, copies)
	}
}
