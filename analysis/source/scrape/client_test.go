// SPDX-License-Identifier: Apache-2.0

package scrape_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source/scrape"
)

const textFormat = "text/plain; version=0.0.4; charset=utf-8"

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	now      = time.Unix(1_784_400_000, 0).UTC()
)

func fixture(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// proxy serves handler at /metrics and returns its address.
func proxy(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", handler)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func answer(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Write(body) //nolint:errcheck // the client may have left
	}
}

func target(addresses ...string) analysis.Target {
	t := analysis.Target{Stable: "web-stable", Canary: "web-canary"}
	for i, a := range addresses {
		t.Pods = append(t.Pods, analysis.Pod{UID: fmt.Sprint("pod", i), Address: a})
	}
	return t
}

func fixtureCounters() analysis.PodCounters {
	return analysis.PodCounters{Canary: analysis.Variant{
		Requests: 105, Failures: 5,
		Latency: &analysis.Histogram{LE: []float64{.001, .1, 60}, Counts: []int64{1, 90, 104, 105}},
	}}
}

func TestScrapeReadsEveryPodAndSaysWhichItMissed(t *testing.T) {
	text := fixture(t)
	good := proxy(t, answer(textFormat, text))
	restarted := proxy(t, answer(textFormat, bytes.Replace(text, []byte("1.78432123425e+09"), []byte("1784321235"), 1)))
	broken := proxy(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusInternalServerError) })
	got, err := scrape.New(scrape.Options{Allow: loopback}).Scrape(t.Context(), target(good, restarted, broken), now)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]analysis.PodCounters{"pod0@1784321234.25": fixtureCounters(), "pod1@1784321235": fixtureCounters()}
	if diff := cmp.Diff(want, got.Pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if !got.At.Equal(now) {
		t.Errorf("at = %v, want %v", got.At, now)
	}
	if len(got.Missed) != 1 || got.Missed[0].UID != "pod2" || got.Missed[0].Err.Error() != "proxy "+broken+": answered with status 500 instead of 200" {
		t.Errorf("missed = %v, want pod2 with its status", got.Missed)
	}
}

func TestAnAnswerThatCannotBeTrustedIsMissedAndNeverQuoted(t *testing.T) {
	text := fixture(t)
	zipped := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write(b) //nolint:errcheck // a buffer does not fail
		z.Close()  //nolint:errcheck // a buffer does not fail
		return out.Bytes()
	}
	withGzip := func(body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(textFormat, body)(w, r)
		}
	}
	huge := append(bytes.Clone(text), bytes.Repeat([]byte("# padding\n"), scrape.MaxBody/10)...)
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // within the error; "" when the answer is fine
	}{
		{"plain", answer(textFormat, text), ""},
		{"without parameters", answer("text/plain", text), ""},
		{"compressed", withGzip(zipped(text)), ""},
		{"in chunks", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", textFormat)
			w.Write(text[:500]) //nolint:errcheck // the client may have left
			w.(http.Flusher).Flush()
			w.Write(text[500:]) //nolint:errcheck // the client may have left
		}, ""},
		{"not found", http.NotFound, "answered with status 404 instead of 200"},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "answered with status 204 instead of 200"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://secret.example/metrics", http.StatusFound)
		}, "answered with a redirect (status 302), which is not followed"},
		{"a page", answer("text/html", []byte("<html>secret")), "answered in a format other than the Prometheus text format 0.0.4"},
		{"another version", answer("text/plain; version=1.0.0", text), "answered in a format other than"},
		{"OpenMetrics", answer("application/openmetrics-text; version=1.0.0", text), "answered in a format other than"},
		{"nothing", answer(textFormat, nil), "serin_proxy_start_time_seconds: 0 series instead of one"},
		{"garbage", answer(textFormat, []byte("secret {{{\n")), "the answer is not in the Prometheus text format 0.0.4, or was cut short"},
		{"a huge body", answer(textFormat, huge), "the answer is longer than 1048576 bytes"},
		{"a small body that unpacks to a huge one", withGzip(zipped(bytes.Repeat([]byte("# secret\n"), 2*scrape.MaxBody))), "the answer is longer than 1048576 bytes"},
		{"not compressed although it says so", withGzip(text), "the compressed answer is broken"},
		{"compressed and cut short", withGzip(zipped(text)[:100]), "the answer was cut short"},
		{"compressed and damaged", withGzip(damaged(zipped(text))), "the compressed answer is broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkAnswer(t, proxy(t, tt.handler), tt.want)
		})
	}
}

func damaged(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-8] ^= 0xff // the checksum
	return b
}

// checkAnswer scrapes one pod and checks what came of it.
func checkAnswer(t *testing.T, address, want string) {
	t.Helper()
	got, err := scrape.New(scrape.Options{Allow: loopback}).Scrape(t.Context(), target(address), now)
	if want == "" {
		if diff := cmp.Diff(map[string]analysis.PodCounters{"pod0@1784321234.25": fixtureCounters()}, got.Pods); diff != "" || err != nil {
			t.Errorf("error %v, pods (-want +got):\n%s", err, diff)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), address) {
		t.Errorf("error = %v, want one with %q and the address", err, want)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("error %q quotes the answer", err)
	}
	if len(got.Pods) != 0 || len(got.Missed) != 1 {
		t.Errorf("%d pods read and %d missed, want none read", len(got.Pods), len(got.Missed))
	}
}

// raw answers every connection with the same bytes and closes it.
func raw(t *testing.T, response string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // the test is over
		open.Wait()
	})
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			request := make([]byte, 4096)
			conn.Read(request)               //nolint:errcheck // answered whatever was asked
			io.WriteString(conn, response)   //nolint:errcheck // the client may have left
			conn.(*net.TCPConn).CloseWrite() //nolint:errcheck // the client may have left
			io.Copy(io.Discard, conn)        //nolint:errcheck // until the client has left
			conn.Close()                     //nolint:errcheck // nothing is lost
		}
	})
	return l.Addr().String()
}

func TestAConnectionThatBreaksIsMissedAndNeverReadInPart(t *testing.T) {
	text := string(fixture(t))
	head := "HTTP/1.1 200 OK\r\nContent-Type: " + textFormat + "\r\n"
	// Up to here it is a well-formed answer in which failures are missing.
	part, _, found := strings.Cut(text, `serin_proxy_requests_total{backend="web-canary",code="500"}`)
	if !found {
		t.Fatal("the fixture has no failures to leave out")
	}
	part = "# TYPE serin_proxy_start_time_seconds gauge\nserin_proxy_start_time_seconds 1784321234.25\n" + part
	for _, tt := range []struct{ name, response, want string }{
		{"at once", "", "the answer was cut short"},
		{"in the header", "HTTP/1.1 200 OK\r\nContent-", "did not answer in HTTP as expected"},
		{"after a part of the length announced", head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(part)+100) + part, "the answer was cut short"},
		{"after a chunk", head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(part), part), "the answer was cut short"},
		{"without having announced a length", head + "Connection: close\r\n\r\n" + part, "the length of the answer is not known"},
		{"after something that is not HTTP", "a secret\r\n\r\n", "did not answer in HTTP as expected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkAnswer(t, raw(t, tt.response), tt.want)
		})
	}
}

func TestAPodThatIsDownIsMissed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, address, "connect: connection refused")
}

func TestASlowPodIsMissedInTime(t *testing.T) {
	slow := proxy(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	slowBody := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		answer(textFormat, fixture(t))(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	client := scrape.New(scrape.Options{Timeout: 300 * time.Millisecond, Allow: loopback})
	got, err := client.Scrape(t.Context(), target(slow, slowBody), now)
	if err == nil || len(got.Pods) != 0 || len(got.Missed) != 2 {
		t.Fatalf("%d pods read and %d missed (%v), want 0 and 2", len(got.Pods), len(got.Missed), err)
	}
	for _, m := range got.Missed {
		if !strings.HasSuffix(m.Err.Error(), ": did not answer in time") {
			t.Errorf("missed %s: %v, want that it was too slow", m.UID, m.Err)
		}
	}
}

// The slow pods answer after the other one has.
func TestASlowPodDelaysNoOther(t *testing.T) {
	answered := make(chan struct{})
	good := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(answered)
		answer(textFormat, fixture(t))(w, r)
	})
	slow := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-answered:
			answer(textFormat, fixture(t))(w, r)
		case <-r.Context().Done():
		}
	})
	client := scrape.New(scrape.Options{Timeout: time.Minute, Allow: loopback})
	got, err := client.Scrape(t.Context(), target(slow, good, slow), now)
	if err != nil || len(got.Pods) != 3 {
		t.Errorf("%d pods read and missed %v (%v), want 3 read", len(got.Pods), got.Missed, err)
	}
}

func TestScrapeEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{})
	slow := proxy(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := scrape.New(scrape.Options{Timeout: time.Hour, Allow: loopback}).Scrape(ctx, target(slow), now); err == nil {
		t.Error("no error although the context ended")
	}
}

func TestOnlyAddressesOfPodsAreRead(t *testing.T) {
	asked := false
	local := proxy(t, func(http.ResponseWriter, *http.Request) { asked = true })
	for name, address := range map[string]string{
		"loopback":            local,
		"loopback in IPv6":    "[::ffff:" + strings.Replace(local, ":", "]:", 1),
		"the metadata server": "169.254.169.254:80",
		"link-local IPv6":     "[fe80::1]:80",
		"unspecified":         "0.0.0.0:80",
		"multicast":           "224.0.0.1:80",
		"a name":              "localhost:80",
		"no port":             "10.0.0.1",
		"a path":              "10.0.0.1:80/x",
		"nothing":             "",
	} {
		_, err := scrape.New(scrape.Options{}).Scrape(t.Context(), target(address), now)
		if err == nil || !strings.Contains(err.Error(), "the address is not") {
			t.Errorf("%s: error = %v, want a refusal of the address", name, err)
		}
	}
	if asked {
		t.Error("a loopback address was read")
	}
}

func TestTheEnvironmentsProxyIsNotUsed(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	checkAnswer(t, proxy(t, answer(textFormat, fixture(t))), "")
}

func TestATargetWithoutPodsIsAnError(t *testing.T) {
	_, err := scrape.New(scrape.Options{}).Scrape(t.Context(), target(), now)
	if err == nil || err.Error() != "the target has no pods; list the proxies to read" {
		t.Errorf("error = %v", err)
	}
}

func TestAPodThatIsListedTwiceIsCountedOnce(t *testing.T) {
	twice := target(proxy(t, answer(textFormat, fixture(t))))
	twice.Pods = append(twice.Pods, twice.Pods[0])
	got, err := scrape.New(scrape.Options{Allow: loopback}).Scrape(t.Context(), twice, now)
	if err != nil || len(got.Pods) != 1 || len(got.Missed) != 1 {
		t.Errorf("%d pods read and %d missed (%v), want one of each", len(got.Pods), len(got.Missed), err)
	}
}

func TestOnlyTheMetricsOfTheAnalysisAreAskedFor(t *testing.T) {
	text := fixture(t)
	var asked url.Values
	address := proxy(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		answer(textFormat, text)(w, r)
	})
	if _, err := scrape.New(scrape.Options{Allow: loopback}).Scrape(t.Context(), target(address), now); err != nil {
		t.Fatal(err)
	}
	want := url.Values{"name[]": {
		"serin_proxy_requests_total", "serin_proxy_unmatched_requests_total", "serin_proxy_refused_requests_total",
		"serin_proxy_request_duration_seconds", "serin_proxy_start_time_seconds", "serin_proxy_backend_info",
	}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
