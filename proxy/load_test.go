// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"
)

// load sends requests at a steady rate and keeps count of what came of each.
type load struct {
	url string
	// keep is whether connections are used again.
	keep   bool
	method string

	mu       sync.Mutex
	answers  map[string]int // by status
	failures []error
	// attempts counts connections handed to a request; more than requests means
	// that the client had to send some again.
	attempts int
}

// run sends requests until the context ends: senders at once, each one every interval.
func (l *load) run(ctx context.Context, senders int, interval time.Duration) {
	l.answers = map[string]int{}
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000, DisableKeepAlives: !l.keep,
	}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			ticker := time.NewTicker(interval)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					l.send(client)
				}
			}
		})
	}
	wg.Wait()
}

// send sends one request, whatever happens to the load meanwhile.
func (l *load) send(client *http.Client) {
	trace := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		l.mu.Lock()
		l.attempts++
		l.mu.Unlock()
	}})
	var body io.Reader = http.NoBody
	if l.method == http.MethodPost {
		body = strings.NewReader("some body")
	}
	request, err := http.NewRequestWithContext(trace, l.method, l.url, body)
	if err != nil {
		l.fail(err)
		return
	}
	response, err := client.Do(request)
	if err != nil {
		l.fail(err)
		return
	}
	_, err = io.Copy(io.Discard, response.Body)
	err = errors.Join(err, response.Body.Close())
	if err != nil {
		l.fail(err)
		return
	}
	if response.StatusCode != http.StatusOK {
		l.fail(fmt.Errorf("status %s %s", response.Status, response.Header.Get("X-Serin-Proxy-Error")))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[fmt.Sprint(response.StatusCode)]++
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, err)
}

func (l *load) String() string {
	return fmt.Sprintf("%s keep-alive=%v: %d answered, %d failed, %d attempts", l.method, l.keep, l.answers["200"], len(l.failures), l.attempts)
}

// startLoads sends every kind of request; the function stops them and returns what came of them.
func startLoads(t *testing.T, url string, senders int, interval time.Duration) func() []*load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var loads []*load
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, keep := range []bool{true, false} {
			l := &load{url: url, keep: keep, method: method}
			loads = append(loads, l)
			wg.Go(func() { l.run(ctx, senders, interval) })
		}
	}
	stop := func() []*load {
		cancel()
		wg.Wait()
		return loads
	}
	t.Cleanup(cancel)
	return stop
}

// answered checks that nothing failed and returns how many requests were answered.
func answered(t *testing.T, loads []*load) int {
	t.Helper()
	total := 0
	for _, l := range loads {
		t.Log(l)
		total += l.answers["200"]
		if len(l.failures) > 0 {
			t.Errorf("%s; the first failure: %v", l, l.failures[0])
		}
	}
	return total
}
