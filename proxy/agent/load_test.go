// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// errElsewhere is the error of a connection of another server.
var errElsewhere = errors.New("this connection goes to another proxy")

// load sends requests at a steady rate and keeps count of what came of each.
type load struct {
	url string
	// keep is whether connections are used again.
	keep   bool
	method string
	// elsewhere is set when new connections are sent elsewhere: they fail.
	elsewhere *atomic.Bool
	// phase is a name for what is live now, or 0 while that changes; nil when
	// unused.
	phase *atomic.Int64

	mu       sync.Mutex
	answers  map[string]int // by status
	failures []error
	// bodies counts, by phase, what was answered to requests that were sent and
	// answered in it.
	bodies map[int64]map[string]int
	// attempts counts connections handed to a request; more than requests means
	// that the client had to send some again.
	attempts int
}

// run sends requests until the context ends: senders at once, each one every interval.
func (l *load) run(ctx context.Context, senders int, interval time.Duration) {
	l.answers, l.bodies = map[string]int{}, map[int64]map[string]int{}
	if l.phase == nil {
		l.phase = &atomic.Int64{}
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if l.elsewhere.Load() {
			return nil, errElsewhere
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: dial, MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000, DisableKeepAlives: !l.keep,
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
					l.send(context.WithoutCancel(ctx), client)
				}
			}
		})
	}
	wg.Wait()
}

// send sends one request.
func (l *load) send(ctx context.Context, client *http.Client) {
	trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
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
	phase := l.phase.Load()
	response, err := client.Do(request)
	if err != nil {
		l.fail(err)
		return
	}
	answer, err := io.ReadAll(response.Body)
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
	l.answers[strconv.Itoa(response.StatusCode)]++
	if phase == 0 || phase != l.phase.Load() {
		return
	}
	if l.bodies[phase] == nil {
		l.bodies[phase] = map[string]int{}
	}
	l.bodies[phase][string(answer)]++
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, err)
}

func (l *load) String() string {
	return fmt.Sprintf("%s keep-alive=%v: %d answered, %d failed, %d attempts", l.method, l.keep, l.answers["200"], len(l.failures), l.attempts)
}

// loadInterval is the pause of a sender between two requests.
const loadInterval = 20 * time.Millisecond

// startLoads sends every kind of request; stop ends that and returns what came of
// them. After elsewhere is set, there are no new connections.
func startLoads(t *testing.T, url string, senders int) (stop func() []*load, elsewhere *atomic.Bool) {
	t.Helper()
	elsewhere = &atomic.Bool{}
	return startPhasedLoads(t, url, senders, elsewhere, nil), elsewhere
}

// startPhasedLoads is startLoads with a name for what is live.
func startPhasedLoads(t *testing.T, url string, senders int, elsewhere *atomic.Bool, phase *atomic.Int64) (stop func() []*load) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var loads []*load
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, keep := range []bool{true, false} {
			l := &load{url: url, keep: keep, method: method, elsewhere: elsewhere, phase: phase}
			loads = append(loads, l)
			wg.Go(func() { l.run(ctx, senders, loadInterval) })
		}
	}
	t.Cleanup(cancel)
	return func() []*load {
		cancel()
		wg.Wait()
		return loads
	}
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
