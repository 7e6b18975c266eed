// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/traffic/nginx"
)

const (
	// busyEvery is how often the requests in progress are counted, and busySamples of the
	// last counts are kept: more than pass between two readings of the operator.
	busyEvery   = time.Second
	busySamples = 16
)

// busy knows how many requests nginx has in progress, beside those that it takes on.
type busy struct {
	capacity atomic.Int64
	percent  atomic.Int32
	samples  [busySamples]int32
	next     int
}

// run counts until the context ends.
func (b *busy) run(ctx context.Context, dir nginx.Dir, clock clock.WithTicker) {
	client := &http.Client{Timeout: busyEvery, Transport: &http.Transport{
		DisableKeepAlives: true, // another nginx may be the current one by then
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", nginx.Instance(dir.Current()).StatusSocket())
		},
	}}
	ticker := clock.NewTicker(busyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			if n, err := inProgress(ctx, client); err == nil { // it is starting, or being replaced
				b.note(n)
			}
		case <-ctx.Done():
			return
		}
	}
}

// note adds a count.
func (b *busy) note(requests int) {
	b.samples[b.next] = 0
	if capacity := int(b.capacity.Load()); capacity > 0 {
		b.samples[b.next] = int32(min(100*requests/capacity, 100)) //nolint:gosec // at most 100
	}
	b.next = (b.next + 1) % busySamples
	most := int32(0)
	for _, s := range b.samples {
		most = max(most, s)
	}
	b.percent.Store(most)
}

// inProgress asks nginx how many requests have begun and are not answered, but for the one that
// asks.
func inProgress(ctx context.Context, client *http.Client) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://nginx/connections", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return parseConnections(io.LimitReader(response.Body, 1<<10))
}

// parseConnections reads the count of the answer of nginx's stub_status.
func parseConnections(text io.Reader) (int, error) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) > 3 && words[2] == "Writing:" {
			n, err := strconv.Atoi(words[3])
			return max(n-1, 0), err
		}
	}
	return 0, fmt.Errorf("nginx does not say how many requests it has in progress: %w", lines.Err())
}
