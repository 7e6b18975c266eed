// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
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

// busy knows how many requests nginx has in progress, beside those that it takes on, and for how
// long no client has come.
type busy struct {
	capacity atomic.Int64
	percent  atomic.Int32
	samples  [busySamples]int32
	next     int
	quiet    quiet
	// datagrams is how many have come so far, of which nginx knows nothing.
	datagrams func() int64
}

// run counts until the context ends.
func (b *busy) run(ctx context.Context, dir conf.Dir, clock clock.WithTicker) {
	status := nginxproc.StatusClient(conf.Instance(dir.Current())) // a link, which leads to another nginx later
	ticker := clock.NewTicker(busyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			c, err := parseConnections(nginxproc.Ask(ctx, status, "/connections"))
			if err != nil { // it is starting, or being replaced
				b.quiet.interrupt(clock.Now())
				continue
			}
			b.note(c.inProgress)
			b.quiet.note(c.accepted, b.datagrams(), clock.Now())
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

// connections is what nginx says of them.
type connections struct {
	// accepted is how many it has accepted since its start, with the one that asks.
	accepted int64
	// inProgress is how many requests have begun and are not answered, but for the one that asks.
	inProgress int
}

// stubStatus is the answer of nginx's module ngx_http_stub_status_module.
var stubStatus = regexp.MustCompile(`(?s)^Active connections: .*\n (\d+) \d+ \d+ \n.* Writing: (\d+) `)

func parseConnections(status string) (c connections, err error) {
	fields := stubStatus.FindStringSubmatch(status)
	if fields == nil {
		return c, fmt.Errorf("nginx does not report its connections: %.40q", status)
	}
	accepted, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return c, err
	}
	writing, err := strconv.Atoi(fields[2])
	return connections{accepted: accepted, inProgress: max(writing-1, 0)}, err
}
