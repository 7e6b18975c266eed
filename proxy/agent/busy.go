// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/traffic/nginx/conf"
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
func (b *busy) run(ctx context.Context, dir conf.Dir, clock clock.WithTicker) {
	status := nginxproc.StatusClient(conf.Instance(dir.Current())) // a link, which leads to another nginx later
	ticker := clock.NewTicker(busyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			if n, err := inProgress(nginxproc.Ask(ctx, status, "/connections")); err == nil { // else it is starting, or being replaced
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

// inProgress is how many requests have begun and are not answered, but for the one that asks, by
// the answer of nginx's stub_status.
func inProgress(status string) (int, error) {
	for line := range strings.Lines(status) {
		words := strings.Fields(line)
		if len(words) > 3 && words[2] == "Writing:" {
			n, err := strconv.Atoi(words[3])
			return max(n-1, 0), err
		}
	}
	return 0, errors.New("nginx does not report how many requests it has in progress")
}
