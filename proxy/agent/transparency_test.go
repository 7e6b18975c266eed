// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// conversation opens a connection to a proxy in front of handler.
func conversation(t *testing.T, handler http.Handler) (net.Conn, *bufio.Reader) {
	t.Helper()
	r := startRig(t, rigOptions{})
	r.want(t, traffic.ProtocolHTTP, startBackend(t, "web-stable", handler).destination(1))
	conn := dial(t, r)
	return conn, bufio.NewReader(conn)
}

func dial(t *testing.T, r *rig) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func readResponse(t *testing.T, r *bufio.Reader) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// echo answers with the request as it arrived.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	dump, err := httputil.DumpRequest(r, true)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(dump)
})

func TestRequestsArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	conn, in := conversation(t, echo)
	for _, test := range []struct{ name, request, want string }{
		{
			"the target is not normalised",
			"GET //a/%2e%2e/b%2Fc/../d?x=%20&y=a+b HTTP/1.1\r\nHost: web.shop\r\n\r\n",
			"GET //a/%2e%2e/b%2Fc/../d?x=%20&y=a+b HTTP/1.1\r\nHost: web.shop\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
		{
			"headers with odd names and repeated ones pass, and the forwarding chain grows by one",
			"GET / HTTP/1.1\r\nHost: web:8080\r\nunder_score: 1\r\nX-A: 1\r\nX-A: 2\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: web:8080\r\nUnder_score: 1\r\nX-A: 1\r\nX-A: 2\r\nX-Forwarded-For: 1.2.3.4, 127.0.0.1\r\nX-Forwarded-Proto: https\r\n\r\n",
		},
		{
			"an upgrade to HTTP/2 is not passed on",
			"GET / HTTP/1.1\r\nHost: web\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: web\r\nHttp2-Settings: AAMAAABkAAQAAP__\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
		{
			"a large header passes",
			"GET / HTTP/1.1\r\nHost: web\r\nCookie: " + strings.Repeat("c", 60000) + "\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: web\r\nCookie: " + strings.Repeat("c", 60000) + "\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
		{
			"a body of a known length passes",
			"PUT /f HTTP/1.1\r\nHost: web\r\nContent-Length: 5\r\n\r\n12345",
			"PUT /f HTTP/1.1\r\nHost: web\r\nContent-Length: 5\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n12345",
		},
		{
			"a chunked body that came whole is passed on with its length",
			"POST /f HTTP/1.1\r\nHost: web\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n",
			"POST /f HTTP/1.1\r\nHost: web\r\nContent-Length: 5\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n12345",
		},
		{
			"an unknown method passes",
			"BREW /pot HTTP/1.1\r\nHost: web\r\n\r\n",
			"BREW /pot HTTP/1.1\r\nHost: web\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
		{
			"a request of HTTP/1.0 without a host passes and ends the connection",
			"GET / HTTP/1.0\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			write(t, conn, test.request)
			response, body := readResponse(t, in)
			if diff := cmp.Diff(test.want, body); diff != "" {
				t.Errorf("the backend saw (status %s) (-want +got):\n%s", response.Status, diff)
			}
		})
	}
}

func TestAnswersArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	conn, in := conversation(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Server", "mine")
		h.Set("Date", "Sat, 01 Jan 2000 00:00:00 GMT")
		h.Set("Location", "http://127.0.0.1/elsewhere")
		h.Set("Cache-Control", "private")
		h.Set("X-Accel-Redirect", "/secret")
		h.Set("X-Accel-Limit-Rate", "1")
		h.Set("Content-Type", "x/y")
		h["Set-Cookie"] = []string{"a=1", "b=2"}
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	write(t, conn, "GET / HTTP/1.1\r\nHost: web\r\n\r\n")
	response, body := readResponse(t, in)
	want := http.Header{
		"Server": {"mine"}, "Date": {"Sat, 01 Jan 2000 00:00:00 GMT"}, "Location": {"http://127.0.0.1/elsewhere"},
		"Cache-Control": {"private"}, "X-Accel-Redirect": {"/secret"}, "X-Accel-Limit-Rate": {"1"}, "Content-Type": {"x/y"},
		"Set-Cookie": {"a=1", "b=2"}, "Content-Length": {"15"}, "Connection": {"keep-alive"},
	}
	if diff := cmp.Diff(want, response.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if response.StatusCode != http.StatusTeapot || body != "short and stout" {
		t.Errorf("got %s %q", response.Status, body)
	}
}

func TestEventsArriveOneByOne(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	conn, in := conversation(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush() //nolint:forcetypeassert // it is one
			<-next                   // the next event is sent only when this one has arrived
		}
	}))
	write(t, conn, "GET /events HTTP/1.1\r\nHost: web\r\n\r\n")
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewReader(response.Body)
	for i := range 3 {
		line, err := events.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q %v", i, line, err)
		}
		if _, err := events.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		next <- struct{}{}
	}
}

func TestUploadsArriveAsTheyAreSent(t *testing.T) {
	t.Parallel()
	arrived := make(chan string)
	conn, in := conversation(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 100)
		for {
			n, err := r.Body.Read(buffer)
			if n > 0 {
				arrived <- string(buffer[:n])
			}
			if err != nil {
				break
			}
		}
		_, _ = io.WriteString(w, "done")
	}))
	write(t, conn, "POST /upload HTTP/1.1\r\nHost: web\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, part := range []string{"one", "two", "three"} {
		write(t, conn, fmt.Sprintf("%x\r\n%s\r\n", len(part), part))
		if got := <-arrived; got != part {
			t.Fatalf("got %q, want %q before the next part is sent", got, part)
		}
	}
	write(t, conn, "0\r\n\r\n")
	if _, body := readResponse(t, in); body != "done" {
		t.Errorf("got %q", body)
	}
}

func TestABodyIsAskedForWhenTheClientWaits(t *testing.T) {
	t.Parallel()
	conn, in := conversation(t, echo)
	write(t, conn, "POST / HTTP/1.1\r\nHost: web\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
	if response, _ := readResponse(t, in); response.StatusCode != http.StatusContinue {
		t.Fatalf("got %s, want 100 Continue", response.Status)
	}
	write(t, conn, "abc")
	if _, body := readResponse(t, in); !strings.HasSuffix(body, "\r\n\r\nabc") {
		t.Errorf("the backend saw %q", body)
	}
}

func TestWebSocketsOutliveAReload(t *testing.T) {
	t.Parallel()
	upgrade := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "upgrade" {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // the test is over
		_, _ = io.Copy(conn, in)
	})
	r := startRig(t, rigOptions{})
	b := startBackend(t, "web-stable", upgrade)
	r.want(t, traffic.ProtocolHTTP, b.destination(1))
	conn := dial(t, r)
	in := bufio.NewReader(conn)
	write(t, conn, "GET /ws HTTP/1.1\r\nHost: web\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if response, err := http.ReadResponse(in, nil); err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", response, err)
	}
	other := startBackend(t, "web-canary", nil)
	for range 3 { // each takes a reload
		r.want(t, traffic.ProtocolHTTP, b.destination(1), other.destination(1))
		r.want(t, traffic.ProtocolHTTP, b.destination(1))
		write(t, conn, "ping\n")
		if line, err := in.ReadString('\n'); err != nil || line != "ping\n" {
			t.Fatalf("%q %v", line, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	proxytest.Eventually(t, "the upgraded request is counted with its status", func() bool {
		return r.requests(t)["web-stable"]["101"] == 1
	})
}

func TestTheProxysOwnErrorsAreMarked(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := &backend{service: "web-gone", address: l.Addr().(*net.TCPAddr)}
	r.want(t, traffic.ProtocolHTTP, gone.destination(1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, r)
	in := bufio.NewReader(conn)
	for _, test := range []struct {
		request  string
		attempts int
	}{
		{"GET / HTTP/1.1\r\nHost: web\r\n\r\n", 3},
		{"POST / HTTP/1.1\r\nHost: web\r\nContent-Length: 1\r\n\r\nx", 1},
		{"BREW / HTTP/1.1\r\nHost: web\r\n\r\n", 3},
	} {
		request := test.request
		before := r.log.count("Connection refused")
		write(t, conn, request)
		response, body := readResponse(t, in)
		if response.StatusCode != http.StatusBadGateway || response.Header.Get("X-Serin-Proxy-Error") == "" || !strings.HasPrefix(body, "serin proxy: ") {
			t.Errorf("%.4s: got %s %v %q", request, response.Status, response.Header, body)
		}
		proxytest.Eventually(t, fmt.Sprintf("%.4s: a refused connection is attempted %d times", request, test.attempts), func() bool {
			return r.log.count("Connection refused")-before == test.attempts
		})
	}
	proxytest.Eventually(t, "each failed request is counted once", func() bool { return r.requests(t)["web-gone"]["502"] == 3 })
}

// listenRaw serves each connection with a function of the test.
func listenRaw(t *testing.T, serve func(net.Conn)) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // the connection's end is all that matters
				serve(conn)
			}()
		}
	}()
	return &backend{service: "web-raw", address: l.Addr().(*net.TCPAddr)}
}

// TestWhatTheBackendBreaksOffIsNotRepeated has a backend that dies of requests to
// /die. That must show, and it must not be sent to the next pod.
func TestWhatTheBackendBreaksOffIsNotRepeated(t *testing.T) {
	t.Parallel()
	var died atomic.Int64
	b := listenRaw(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if request.URL.Path == "/die" {
				died.Add(1)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	r := startRig(t, rigOptions{})
	r.want(t, traffic.ProtocolHTTP, b.destination(1))
	for i := range 20 {
		if code, _ := get(t, r.url("/live")); code != http.StatusOK {
			t.Fatalf("got %d", code)
		}
		if code, _ := get(t, r.url("/die")); code != http.StatusBadGateway {
			t.Fatalf("request %d got %d, want 502", i, code)
		}
	}
	if got := died.Load(); got != 20 {
		t.Errorf("20 requests were sent and %d arrived", got)
	}
	proxytest.Eventually(t, "all are counted", func() bool {
		return cmp.Equal(r.requests(t)["web-raw"], map[string]int{"200": 20, "502": 20})
	})
}

// TestANewClientConnectionIsNotServedOnAnOldOne has a backend that closes each
// connection after its answer without saying so, like one that is being stopped.
// Who sends a POST on a new connection must not notice.
func TestANewClientConnectionIsNotServedOnAnOldOne(t *testing.T) {
	t.Parallel()
	b := listenRaw(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	r := startRig(t, rigOptions{})
	r.want(t, traffic.ProtocolHTTP, b.destination(1))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 200 {
		response, err := client.Post(r.url("/"), "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			t.Fatalf("POST: %s", response.Status)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
