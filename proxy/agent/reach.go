// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/traffic"
)

const (
	// reachTimeout is how long a backend may take to become reachable before the
	// attempt is given up and made again later.
	reachTimeout = 5 * time.Second
	// reachPause lies between two tries.
	reachPause = 100 * time.Millisecond
	// dialTimeout bounds one try.
	dialTimeout = time.Second
)

// dialFunc opens a connection, as net.Dialer.DialContext does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newlyUsed are the addresses that get traffic by a split and got none by the one
// before.
func newlyUsed(before, after traffic.Split) []string {
	known := used(before)
	return slices.DeleteFunc(used(after), func(address string) bool { return slices.Contains(known, address) })
}

// used are the addresses that get users' requests. Mirrored requests may as well
// be lost, so what gets only those need not be reached.
func used(split traffic.Split) []string {
	var out []string
	add := func(d traffic.Destination) {
		address := net.JoinHostPort(d.Address, strconv.Itoa(int(d.Port)))
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	for _, p := range split.Ports {
		if p.Protocol == traffic.ProtocolUDP {
			continue // a port that accepts datagrams does not say so
		}
		for _, d := range p.Destinations {
			if d.Weight > 0 {
				add(d)
			}
		}
		if p.Default != nil {
			add(*p.Default)
		}
	}
	return out
}

// reach waits until every address accepts a connection from this very pod. That
// the pods of a Service are ready does not mean that this node already sends the
// Service's connections to them: without this, the first requests to a new
// backend are refused.
func reach(ctx context.Context, c clock.Clock, dial dialFunc, addresses []string) error {
	deadline := c.Now().Add(reachTimeout)
	for _, address := range addresses {
		for {
			err := try(ctx, dial, address)
			if err == nil {
				break
			}
			if ctx.Err() != nil || !c.Now().Before(deadline) {
				return fmt.Errorf("the backend at %s does not accept connections, and would get traffic: %w", address, err)
			}
			select {
			case <-ctx.Done():
			case <-c.After(reachPause):
			}
		}
	}
	return nil
}

func try(ctx context.Context, dial dialFunc, address string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
