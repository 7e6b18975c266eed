// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/config/testenv"
)

const (
	// enoughRejections tell that the recorder works, and interruptionLimit bounds how long they may
	// take: the kernel tells clients of one rejection a second.
	enoughRejections  = 10
	interruptionLimit = 3 * time.Minute
)

// TestLongWhatTheNodeLeadsNowhereIsNoted takes the rule of a Service away for a moment, again and
// again, and makes connections to it: the recorder notes each that is refused. A kernel does so for
// nanoseconds while a rule is exchanged, which is too rare to wait for. The recorder may note more,
// since the kernel does not tell a client that is still sending, and tries again a second later.
func TestLongWhatTheNodeLeadsNowhereIsNoted(t *testing.T) {
	i := requireCluster(t)
	if i.rejections == nil {
		testenv.Missing(t, "the rules of an existing cluster's nodes can't be changed", "run it on the local cluster")
	}
	dns, err := i.core.CoreV1().Services(metav1.NamespaceSystem).Get(t.Context(), "kube-dns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(mark, err)
	}
	address := netip.AddrPortFrom(netip.MustParseAddr(dns.Spec.ClusterIP), 53)
	// A node redirects a client that is not a pod, and as often as that it keeps a rejection back.
	i.inNode(t, "", "sysctl", "-w", "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.eth0.send_redirects=0")
	begin := time.Now()
	noted := func() (n int64) {
		for _, r := range i.rejections.Since(begin) {
			if r.Address == address.String() {
				n++
			}
		}
		return n
	}
	ctx, end := context.WithTimeout(t.Context(), interruptionLimit)
	defer end()
	var c connections
	for range 4 {
		c.all.Go(func() { c.make(ctx, t, address.String()) })
	}
	times := i.interruptRule(t, address, func() bool { return ctx.Err() == nil && c.refused.Load() < enoughRejections })
	end()
	c.all.Wait()
	if err := i.rejections.CatchUp(t.Context()); err != nil {
		t.Error(mark, err)
	}
	t.Logf("of %d connections %d were refused, while the rule was taken away %d times; %d were noted", c.made.Load(), c.refused.Load(), times, noted())
	if c.refused.Load() < enoughRejections || noted() < c.refused.Load() {
		t.Error(mark, "not all that was refused was noted, or too little was refused to tell")
	}
}

// connections are made one after another, and counted.
type connections struct {
	all           sync.WaitGroup
	made, refused atomic.Int64
}

func (c *connections) make(ctx context.Context, t *testing.T, address string) {
	for ctx.Err() == nil {
		c.made.Add(1)
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			c.refused.Add(1)
			continue
		}
		if err != nil {
			t.Error(mark, err)
			return
		}
		connection.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert,errcheck // it leaves its port at once
		connection.Close()                     //nolint:errcheck // nothing was sent
	}
}

// interruptRule takes the rule by which kube-proxy leads an address on away and puts it back while
// it is to go on, and returns how often.
func (i *installation) interruptRule(t *testing.T, address netip.AddrPort, goOn func() bool) (n int) {
	t.Helper()
	services := i.inNode(t, "", "nft", "list", "map", "ip", "kube-proxy", "service-ips")
	pattern := fmt.Sprintf(`%s \. tcp \. %d : goto ([^\s,]+)`, regexp.QuoteMeta(address.Addr().String()), address.Port())
	match := regexp.MustCompile(pattern).FindStringSubmatch(services)
	if match == nil {
		t.Fatalf("%s kube-proxy has no rule for %s: %s", mark, address, services)
	}
	rule := i.inNode(t, "", "nft", "list", "chain", "ip", "kube-proxy", match[1])
	for ; goOn(); n++ {
		i.inNode(t, "", "nft", "flush", "chain", "ip", "kube-proxy", match[1])
		i.inNode(t, rule, "nft", "-f", "-")
	}
	return n
}

// inNode runs a program of this machine in the network of the local cluster's node.
func (i *installation) inNode(t *testing.T, input string, args ...string) string {
	t.Helper()
	command := i.cluster.NodeCommand(t.Context(), args[0], args[1:]...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", mark, strings.Join(args, " "), err, output)
	}
	return string(output)
}
