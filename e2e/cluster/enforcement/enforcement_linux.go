// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/serin-dev/serin/e2e/cluster"
)

const (
	// queue is the number of the kernel's queue that the program reads.
	queue = 100
	// notPossible is how the program ends where the kernel can't do it.
	notPossible = 3
	// readyPeriod is how often it is looked whether the program is ready, readyLimit how long that
	// may take.
	readyPeriod = 50 * time.Millisecond
	readyLimit  = time.Minute
)

// Enforcer enforces the NetworkPolicies of a local cluster.
type Enforcer struct {
	cluster *cluster.Cluster
	program *exec.Cmd
	// said are the program's errors, and end is how it ended; they may be read when ended is closed.
	said  bytes.Buffer
	end   error
	ended chan struct{}

	mu        sync.Mutex
	concerned sets.Set[string]
}

// Start enforces the NetworkPolicies of some namespaces of a local cluster until Stop, or the end of
// this process. The program is the one of e2e/tools/networkpolicies. Start returns when it decides
// about connections.
//
// The error matches [cluster.ErrNotPossible] where the kernel can't do it.
func Start(ctx context.Context, c *cluster.Cluster, program string, namespaces ...string) (*Enforcer, error) {
	e := &Enforcer{cluster: c, ended: make(chan struct{})}
	// Each new connection waits for it, so that it goes before what it serves.
	e.program = c.NodeCommand(context.WithoutCancel(ctx), "nice", "-n", "-15", "setpriv", "--pdeathsig", "KILL", program,
		"--kubeconfig", c.Kubeconfig, "--queue", strconv.Itoa(queue), "--namespaces", strings.Join(namespaces, ","))
	e.program.Stderr = &e.said
	lines, err := e.program.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := e.program.Start(); err != nil {
		return nil, fmt.Errorf("start kube-network-policies: %w", err)
	}
	go func() {
		defer close(e.ended)
		e.read(lines)
		e.end = e.program.Wait()
	}()
	err = wait.PollUntilContextTimeout(ctx, readyPeriod, readyLimit, true, func(ctx context.Context) (bool, error) {
		select {
		case <-e.ended:
			return false, e.failure()
		default:
			return e.Packets(ctx).Bound, nil
		}
	})
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// failure says why the program has ended.
func (e *Enforcer) failure() error {
	if e.program.ProcessState.ExitCode() == notPossible {
		return &cluster.NotPossibleError{Reason: strings.TrimSpace(e.said.String()), Remedy: "use another kernel, such as that of Debian"}
	}
	return fmt.Errorf("kube-network-policies has ended: %w: %s", e.end, &e.said)
}

// read notes which pods are concerned.
func (e *Enforcer) read(lines io.Reader) {
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		list, found := strings.CutPrefix(scanner.Text(), "concerned: [")
		if !found {
			continue
		}
		e.mu.Lock()
		e.concerned = sets.New(strings.Fields(strings.TrimSuffix(list, "]"))...)
		e.mu.Unlock()
	}
}

// Concerns tells whether policies are enforced by now for the pod that has an address. They are
// from the moment on at which the program knows the pod, if its namespace has any.
func (e *Enforcer) Concerns(address string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.concerned.Has(address)
}

// Packets are those that began a connection of pods that are concerned.
type Packets struct {
	// Bound tells that the program decides about them.
	Bound bool
	// Queued is how many there were until now. Dropped is how many of them the program was too slow
	// for: who sent one sends it again after a second.
	Queued, Dropped int64
}

// Packets reads them from the kernel.
func (e *Enforcer) Packets(ctx context.Context) Packets {
	table, err := e.cluster.NodeCommand(ctx, "cat", "/proc/net/netfilter/nfnetlink_queue").Output()
	if err != nil {
		return Packets{} // the kernel may make the file with the first queue
	}
	return readPackets(string(table))
}

// readPackets finds the queue in the kernel's table. Its columns are the number of the queue, the
// port of the program, how many packets wait, two of what is copied, how many were dropped as the
// queue was full and as the program's socket was, the number of the latest packet, and 1.
func readPackets(table string) (p Packets) {
	for line := range strings.Lines(table) {
		var number, port, waiting, mode, copied, full, lost int64
		_, err := fmt.Sscan(line, &number, &port, &waiting, &mode, &copied, &full, &lost, &p.Queued)
		if err == nil && number == queue {
			p.Bound, p.Dropped = true, full+lost
			return p
		}
	}
	return Packets{}
}

// Stop ends the enforcement. The error says when it had ended before.
func (e *Enforcer) Stop() error {
	select {
	case <-e.ended:
		return e.failure()
	default:
		_ = e.program.Process.Signal(syscall.SIGTERM) // it may end right now
		<-e.ended
		return nil
	}
}
