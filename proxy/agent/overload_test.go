// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/serin-dev/serin/proxy/exposition"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// fewMiB is memory in which nginx takes on some hundred requests at once.
const fewMiB = 57 << 20

// slowBackend begins to answer, and ends when it is released.
func slowBackend(t *testing.T, service string, set func(*http.Server)) (b *backend, release func()) {
	t.Helper()
	released := make(chan struct{})
	b = startBackendWith(t, service, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_, _ = w.Write(make([]byte, 64<<10))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, service)
	}), set)
	return b, func() { close(released) }
}

// answer is what came of a request.
type answer struct {
	code         int
	reason, body string
	err          error
}

// request sends a request on a connection of its own or a kept one. begun is called when the
// answer begins.
func request(ctx context.Context, client *http.Client, url string, begun func()) answer {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{err: err}
	}
	response, err := client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	begun()
	body, err := io.ReadAll(response.Body)
	return answer{code: response.StatusCode, reason: response.Header.Get("X-Serin-Proxy-Error"), body: string(body), err: err}
}

// workerIDs are the processes of nginx's workers.
func workerIDs(t *testing.T, dir conf.Dir) []string {
	t.Helper()
	master, err := os.ReadFile(filepath.Join(dir.Current(), "nginx.pid"))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(master))
	children, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(string(children))
	slices.Sort(ids)
	return ids
}

// memoryOf is what processes have of their own, in bytes.
func memoryOf(t *testing.T, ids []string) int {
	t.Helper()
	total := 0
	for _, id := range ids {
		text, err := os.ReadFile("/proc/" + id + "/smaps_rollup")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[0], "Private_") {
				kib, err := strconv.Atoi(words[1])
				if err != nil {
					t.Fatal(err)
				}
				total += kib << 10
			}
		}
	}
	return total
}

func TestWhatIsTooManyIsRefusedAtOnceAndTheRestServed(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) { overload(t, traffic.ProtocolHTTP, 72<<10) })
	t.Run("HTTP/2", func(t *testing.T) { overload(t, traffic.ProtocolHTTP2, 120<<10) })
}

// overload sends twice the requests that fit.
func overload(t *testing.T, protocol traffic.Protocol, reckoned int) {
	r := startRig(t, rigOptions{memory: fewMiB})
	protocols := &http.Protocols{}
	protocols.SetHTTP1(protocol == traffic.ProtocolHTTP)
	protocols.SetUnencryptedHTTP2(protocol == traffic.ProtocolHTTP2)
	speak := func(s *http.Server) { s.Protocols = protocols }
	stable, release := slowBackend(t, "web-stable", speak)
	r.want(t, protocol, stable.destination(1))
	fit := r.agent.rendering.Capacity.Requests
	if fit < 8 || fit > 200 {
		t.Fatalf("%d requests fit, which this test does not expect", fit)
	}
	warm := request(t.Context(), &http.Client{Transport: &http.Transport{Protocols: protocols, DisableKeepAlives: true}}, r.url("/"), func() {})
	if warm.err != nil || warm.code != http.StatusOK {
		t.Fatalf("a request before the overload got %+v", warm)
	}
	workers := workerIDs(t, r.dir)
	before := memoryOf(t, workers)

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * fit, Protocols: protocols}}
	answers, arrived := make(chan answer, fit), make(chan struct{}, fit)
	for range fit {
		go func() {
			got := request(t.Context(), client, r.url("/slow"), func() { arrived <- struct{}{} })
			if got.err != nil {
				arrived <- struct{}{}
			}
			answers <- got
		}()
	}
	for range fit {
		<-arrived
	}
	// The sockets are the kernel's, 16 KiB of what is reckoned for a request.
	if took := (memoryOf(t, workers) - before) / fit; took > reckoned-16<<10 {
		t.Errorf("a request takes %d bytes of the workers, and is reckoned to take %d with its sockets", took, reckoned)
	} else {
		t.Logf("a request takes %d bytes of the workers", took)
	}
	for range fit { // each while all that fit are in progress
		got := request(t.Context(), client, r.url("/"), func() {})
		if got.err != nil || got.code != http.StatusServiceUnavailable || got.reason != "too many requests in progress" {
			t.Fatalf("a request that is too many got %+v", got)
		}
	}
	// The agent answers in an overload, and the proxy stays among the endpoints.
	for _, path := range []string{"/readyz", "/healthz", "/served"} {
		if got := request(t.Context(), http.DefaultClient, "http://"+r.status+path, func() {}); got.err != nil || got.code != http.StatusOK {
			t.Errorf("%s in an overload: %d %v", path, got.code, got.err)
		}
	}
	// So is another configuration: a backend that comes in an overload gets its share.
	canary := startBackendWith(t, "web-canary", nil, speak)
	r.want(t, protocol, stable.destination(0), canary.destination(1))
	if got := request(t.Context(), &http.Client{Transport: &http.Transport{Protocols: protocols}}, r.url("/"), func() {}); got.body != "web-canary" {
		t.Errorf("a request by another configuration in the overload got %+v", got)
	}
	r.want(t, protocol, stable.destination(1))

	release()
	for range fit {
		if got := <-answers; got.err != nil || got.code != http.StatusOK {
			t.Errorf("a request that fit got %+v", got)
		}
	}
	for range 2 * fit {
		if got := request(t.Context(), client, r.url("/"), func() {}); got.err != nil || got.code != http.StatusOK {
			t.Fatalf("a request after the overload got %+v", got)
		}
	}
	if len(workers) != 2 || r.log.count("exited on signal") > 0 {
		t.Errorf("of the workers %v some ended", workers)
	}
	refused := func() float64 {
		series := r.gather(t)[exposition.Refused].GetMetric()
		return series[0].GetCounter().GetValue()
	}
	proxytest.Eventually(t, "every request is counted: what a backend was not asked says nothing of it", func() bool {
		stable, own := r.requests(t)["web-stable"], byCode(r.gather(t), "serin_proxy_unrouted_requests_total")[""]
		return stable["200"] == 3*fit+1 && stable["503"] == 0 && own["503"] == fit && refused() == float64(fit)
	})
}

func TestConnectionsOfATCPPortThatAreTooManyAreClosed(t *testing.T) {
	r := startRig(t, rigOptions{memory: fewMiB})
	stable := startBackend(t, "db", nil)
	r.want(t, traffic.ProtocolTCP, stable.destination(1))
	fit := r.agent.rendering.Capacity.Streams
	open := make([]net.Conn, 0, fit)
	for range fit {
		c := dialTCP(t, r)
		if line, err := hello(c); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("connection %d of %d: %q %v", len(open)+1, fit, line, err)
		}
		open = append(open, c)
	}
	if line, err := hello(dialTCP(t, r)); err == nil {
		t.Fatalf("a connection that is too many got %q", line)
	}
	_ = open[0].Close()
	proxytest.Eventually(t, "a place is free again", func() bool {
		line, err := hello(dialTCP(t, r))
		return err == nil && strings.Contains(line, "200")
	})
}

func dialTCP(t *testing.T, r *rig) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(r.port))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hello asks the backend behind a connection, which stays open, for its first line.
func hello(c net.Conn) (string, error) {
	if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: db\r\n\r\n"); err != nil {
		return "", err
	}
	buffer := make([]byte, 4096)
	n, err := c.Read(buffer)
	if n == 0 && err == nil {
		err = errors.New("nothing was read")
	}
	line, _, _ := bytes.Cut(buffer[:n], []byte("\r\n"))
	return string(line), err
}
