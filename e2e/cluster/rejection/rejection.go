// SPDX-License-Identifier: Apache-2.0

// Package rejection tells which connections a node rejected while kube-proxy exchanged the rule
// of their Service, whatever the Service's endpoints were.
//
// The kernel exchanges a rule and the map in it in one go, but a packet that has met the former
// rule looks into the former map, which is not valid any more. So it is led nowhere, keeps the
// Service's address, and comes to the rule by which kube-proxy rejects what is sent to a port
// that a Service does not have. A connection to a Service without endpoints ends at another
// rule, and one that a pod refuses has the address of the pod by then.
package rejection

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// Rejection is a connection that was led nowhere.
type Rejection struct {
	// Time is when the node told that it rejected it, which it may have done some seconds before.
	Time time.Time `json:"time"`
	// Address is that of the Service, with the port.
	Address string `json:"address"`
}

// Recorder notes what a node rejects.
type Recorder struct {
	mu    sync.Mutex
	found []Rejection

	// knock makes a connection in the node's network, turn has one CatchUp at a time do so, and
	// wrong is what the last one connected to: the address of the API server's Service, with a
	// port that it does not have.
	knock func(ctx context.Context, to netip.AddrPort)
	turn  sync.Mutex
	wrong netip.AddrPort
}

const (
	// tracing marks the packets that still have a Service's address when kube-proxy has led the
	// others to pods. It is before kube-proxy's own filter, which has the priority 0.
	tracing = `table inet serin-rejection
delete table inet serin-rejection
table inet serin-rejection {
	chain forward { type filter hook forward priority -5; ct state new ip daddr %[1]s meta nftrace set 1; }
	chain output { type filter hook output priority -5; ct state new ip daddr %[1]s meta nftrace set 1; }
}
`
	// readyTimeout bounds how long the kernel's messages may take to come.
	readyTimeout = 30 * time.Second
)

// Record begins to note what a node rejects of what is sent to the network of its cluster's
// Services. The function makes commands that run in the node's network. Record returns when it has
// noted a rejection that it caused itself, and goes on until the context ends.
func Record(ctx context.Context, command func(ctx context.Context, name string, args ...string) *exec.Cmd, services netip.Prefix, now clock.PassiveClock) (*Recorder, error) {
	table := command(ctx, "nft", "-f", "-")
	table.Stdin = strings.NewReader(fmt.Sprintf(tracing, services))
	if output, err := table.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("have the kernel trace what is led nowhere: %w: %s", err, output)
	}
	// It ends with this process, however that ends.
	monitor := command(ctx, "setpriv", "--pdeathsig", "KILL", "nft", "monitor", "trace")
	lines, err := monitor.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := monitor.Start(); err != nil {
		return nil, fmt.Errorf("read what the kernel traces: %w", err)
	}
	// Kubernetes gives the first address to the API server.
	r := &Recorder{wrong: netip.AddrPortFrom(services.Addr().Next(), 0), knock: func(ctx context.Context, to netip.AddrPort) {
		_ = command(ctx, "bash", "-c", fmt.Sprintf("echo > /dev/tcp/%s/%d", to.Addr(), to.Port())).Run() // it is rejected
	}}
	go func() {
		r.read(lines, now.Now)
		_ = monitor.Wait() // the context has ended, or nothing more is noted, which excuses nothing
	}()
	if err := r.CatchUp(ctx); err != nil {
		return nil, fmt.Errorf("%w: has kube-proxy other rules by now?", err)
	}
	return r, nil
}

// CatchUp returns when all is noted that the node rejected before: a busy machine reads later what
// the kernel tells. It has a connection rejected, each time another one.
func (r *Recorder) CatchUp(ctx context.Context) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.wrong = netip.AddrPortFrom(r.wrong.Addr(), r.wrong.Port()+1)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyTimeout, true, func(context.Context) (bool, error) {
		r.knock(ctx, r.wrong)
		return r.has(r.wrong.String()), nil
	})
	if err != nil {
		return fmt.Errorf("the rejection of a connection to %s was not noted within %s: %w", r.wrong, readyTimeout, err)
	}
	r.forget(r.wrong.String())
	return nil
}

// Since is what was rejected after a time.
func (r *Recorder) Since(begin time.Time) []Rejection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.found), func(found Rejection) bool { return !found.Time.After(begin) })
}

// forget leaves out the connections to an address.
func (r *Recorder) forget(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = slices.DeleteFunc(r.found, func(found Rejection) bool { return found.Address == address })
}

// has tells whether a connection to an address was rejected.
func (r *Recorder) has(address string) bool {
	return slices.ContainsFunc(r.Since(time.Time{}), func(found Rejection) bool { return found.Address == address })
}

// read notes what the lines of `nft monitor trace` tell.
func (r *Recorder) read(lines io.Reader, now func() time.Time) {
	// A packet's lines follow one another, but those of others may come in between.
	addresses := map[string]string{}
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		id, event, _ := strings.Cut(strings.TrimPrefix(scanner.Text(), "trace id "), " ")
		switch {
		case strings.Contains(event, " packet: "):
			addresses[id] = destination(event)
		case strings.Contains(event, " (verdict drop)"):
			if strings.Contains(event, " kube-proxy cluster-ips-check rule ip daddr @cluster-ips ") {
				r.note(Rejection{Time: now(), Address: addresses[id]})
			}
			delete(addresses, id)
		}
	}
}

func (r *Recorder) note(found Rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, found)
}

// destination is the address and the port that a packet of TCP or UDP is sent to.
func destination(packet string) string {
	var address, port string
	words := strings.Fields(packet)
	for i, word := range words[:max(0, len(words)-1)] {
		switch word {
		case "daddr":
			address = words[i+1]
		case "dport":
			port = words[i+1]
		}
	}
	return address + ":" + port
}
