// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/serin-dev/serin/config/testenv"
)

// BenchmarkConnectionsToARule makes connections to an address that a rule of nftables, like those
// that kube-proxy writes for a Service, leads to two servers. It tells how many are refused while
// the rule stays, and while another that says the same takes its place again and again, as
// kube-proxy does for each change of a Service's endpoints.
func BenchmarkConnectionsToARule(b *testing.B) {
	if os.Geteuid() != 0 {
		testenv.Missing(b, "only root may write rules of nftables", "run the benchmark as root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		testenv.Missing(b, err.Error(), "on Debian: apt-get install nftables")
	}
	rule := serviceRule{Address: "127.99.0.1", Servers: []netip.AddrPort{acceptAll(b), acceptAll(b)}}
	writeRules(b, serviceTable, rule)
	b.Cleanup(func() { writeRules(b, "delete table ip serin-benchmark\n", rule) })
	for _, exchanged := range []bool{false, true} {
		name := "kept"
		if exchanged {
			name = "exchanged"
		}
		b.Run(name, func(b *testing.B) {
			stop := make(chan struct{})
			var exchanges int
			var exchanging sync.WaitGroup
			if exchanged {
				exchanging.Go(func() {
					for ; ; exchanges++ {
						select {
						case <-stop:
							return
						default:
							writeRules(b, exchange, rule)
						}
					}
				})
			}
			var refused atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := dialOnce(b.Context(), rule.Address+":80"); errors.Is(err, syscall.ECONNREFUSED) {
						refused.Add(1)
					} else if err != nil {
						b.Error(err)
						return
					}
				}
			})
			close(stop)
			exchanging.Wait()
			b.ReportMetric(float64(refused.Load()), "refused")
			b.ReportMetric(float64(exchanges), "exchanges")
		})
	}
}

// serviceRule leads connections from an address to servers.
type serviceRule struct {
	Address string
	Servers []netip.AddrPort
}

// The parts of kube-proxy's rules that lead to a Service's endpoints, and that reject what is
// sent to a Service without endpoints.
const (
	leadOn = `meta l4proto tcp dnat ip to numgen random mod {{len .Servers}} map { {{range $i, $s := .Servers}}{{if $i}}, {{end}}{{$i}} : {{$s.Addr}} . {{$s.Port}}{{end}} }`

	serviceTable = `table ip serin-benchmark {
	chain service { ` + leadOn + `; }
	chain nat { type nat hook output priority -100; ip daddr {{.Address}} tcp dport 80 jump service; }
	chain filter { type filter hook output priority 0; ip daddr {{.Address}} reject; }
}
`
	exchange = `add chain ip serin-benchmark service
flush chain ip serin-benchmark service
add rule ip serin-benchmark service ` + leadOn + "\n"
)

// writeRules has nft carry out a text about a rule, whole or not at all.
func writeRules(b *testing.B, text string, rule serviceRule) {
	b.Helper()
	var input strings.Builder
	if err := template.Must(template.New("").Parse(text)).Execute(&input, rule); err != nil {
		b.Error(err)
		return
	}
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(input.String())
	if out, err := command.CombinedOutput(); err != nil {
		b.Errorf("nft: %v: %s", err, out)
	}
}

// acceptAll starts a server that ends every connection, until the benchmark ends.
func acceptAll(b *testing.B) netip.AddrPort {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() }) //nolint:errcheck // nothing is lost
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			connection.Close() //nolint:errcheck // as it is for
		}
	}()
	return listener.Addr().(*net.TCPAddr).AddrPort() //nolint:forcetypeassert // it is one of TCP
}

// dialOnce makes a connection and ends it, without a trace that would keep its port.
func dialOnce(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: 3 * time.Second}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return errors.Join(connection.(*net.TCPConn).SetLinger(0), connection.Close()) //nolint:forcetypeassert // it is one of TCP
}
