// SPDX-License-Identifier: Apache-2.0

package proxytest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/proxy/exposition"
)

// MemoryDir is a folder with a short name (a unix socket's path has at most 107
// characters) in memory, because that is what pods have.
func MemoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "serin") //nolint:usetesting // t.TempDir is neither
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// FreePort is one of testenv.FreePort.
func FreePort(t *testing.T) int32 {
	t.Helper()
	port, err := testenv.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Eventually polls a condition that other processes bring about.
func Eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

const maxDatagram = 1 << 16

// ListenUDP answers each datagram with a name, how many the session has sent, and
// what was sent.
func ListenUDP(t *testing.T, service, address string) *net.UDPAddr {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, maxDatagram)
		seen := map[string]int{}
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			seen[from.String()]++
			_, _ = conn.WriteTo(fmt.Appendf(nil, "%s %d %s", service, seen[from.String()], buffer[:n]), from)
		}
	}()
	udp, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		t.Fatalf("%T is no address of UDP", conn.LocalAddr())
	}
	return udp
}

// DialUDP opens a client of a port.
func DialUDP(t *testing.T, host string, port int32) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Exchange sends a datagram and returns the answer to it.
func Exchange(conn net.Conn, text string) (string, error) {
	if _, err := conn.Write([]byte(text)); err != nil {
		return "", err
	}
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return "", err
	}
	buffer := make([]byte, maxDatagram)
	n, err := conn.Read(buffer)
	return string(buffer[:n]), err
}

// Labels are those of a series.
func Labels(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// Gather reads all metrics, by name.
func Gather(t *testing.T, from prometheus.Gatherer) exposition.Families {
	t.Helper()
	list, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := exposition.Families{}
	for _, f := range list {
		families[f.GetName()] = f
	}
	return families
}

// outcomes are requests by backend and by what they say of it.
type outcomes map[string]map[analysis.Outcome]int64

func (o outcomes) add(backend string, outcome analysis.Outcome, m *dto.Metric) {
	if o[backend] == nil {
		o[backend] = map[analysis.Outcome]int64{}
	}
	if n := int64(m.GetCounter().GetValue()); n > 0 && outcome != analysis.Ignored {
		o[backend][outcome] += n
	}
}

// CheckFlows compares the sum over all clients with the counts of all requests that say
// something of a version.
func CheckFlows(t *testing.T, metrics exposition.Families) {
	t.Helper()
	for _, kind := range []string{"", exposition.UnmatchedKind} {
		want, got := outcomes{}, outcomes{}
		for _, m := range metrics[exposition.RequestsOf(kind)].GetMetric() {
			labels := Labels(m)
			status, err := strconv.Atoi(labels[exposition.Code])
			if err != nil {
				t.Fatal(err)
			}
			want.add(labels[exposition.Backend], analysis.Classify(status), m)
			got.add(labels[exposition.Backend], analysis.Ignored, m)
		}
		for _, m := range metrics[exposition.FlowRequests].GetMetric() {
			labels := Labels(m)
			if (labels[exposition.Apex] == "") != (kind != "") {
				continue
			}
			outcome := analysis.Success
			if labels[exposition.Result] == exposition.Failure {
				outcome = analysis.Failure
			}
			got.add(labels[exposition.Backend], outcome, m)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the clients of %srequests don't add up to all of them (-want +got):\n%s", kind, diff)
		}
	}
}
