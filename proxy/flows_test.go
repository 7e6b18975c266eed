// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/traffic"
)

// checkPairs compares the sum over all pairs with the counts of all requests that say
// something of a version.
func checkPairs(t *testing.T, s *counterState) {
	t.Helper()
	type outcomes map[string]map[analysis.Outcome]uint64
	for _, kind := range []string{accesslog.KindSplit, accesslog.KindUnmatched} {
		want, got := outcomes{}, outcomes{}
		for service, counts := range s.Kinds[kind] {
			want[service] = map[analysis.Outcome]uint64{analysis.Success: 0, analysis.Failure: 0}
			for code, n := range counts.Requests {
				status, err := strconv.Atoi(code)
				if err != nil {
					t.Fatal(err)
				}
				if o := analysis.Classify(status); o != analysis.Ignored {
					want[service][o] += n
				}
			}
			got[service] = map[analysis.Outcome]uint64{analysis.Success: 0, analysis.Failure: 0}
		}
		for service, clients := range s.Flows.Pairs[kind] {
			for _, p := range clients {
				got[service][analysis.Success] += p.Success
				got[service][analysis.Failure] += p.Failure
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the pairs of %s requests don't add up to all of them (-want +got):\n%s", kind, diff)
		}
	}
}

// flowStage is a counter in the test's hands.
type flowStage struct {
	*metrics
	clock *clocktesting.FakeClock
	file  string
}

func newFlowStage(t *testing.T) *flowStage {
	t.Helper()
	s := &flowStage{clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), file: filepath.Join(t.TempDir(), "counts")}
	s.restart(t)
	if err := s.requests.know(types.NamespacedName{Namespace: "shop", Name: "web"}, map[string]string{"b1": "web-stable", "b2": "web-canary"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// restart has another agent take over.
func (s *flowStage) restart(t *testing.T) {
	t.Helper()
	s.metrics = newMetrics(s.file, s.clock)
	if err := s.requests.load(); err != nil {
		t.Fatal(err)
	}
}

// log adds a line to the access log.
func (s *flowStage) log(backend, code, kind, client string) {
	s.requests.Take([]byte(logged(backend, code, kind, after(20), from(client))))
}

// flows reads the metrics of all pairs: "apex backend client" → successes, failures and
// durations up to 25 ms.
func (s *flowStage) flows(t *testing.T) map[string][3]uint64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][3]uint64{}
	for _, f := range families {
		column := map[string]int{"serin_proxy_flow_requests_total": 0, "serin_proxy_flow_duration_seconds": 2}
		if _, ok := column[f.GetName()]; !ok {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := labelsOf(m)
			if labels["namespace"] != "shop" || labels["server"] != "" {
				t.Errorf("the labels are %v", labels)
			}
			key := labels["apex"] + " " + labels["backend"] + " " + labels["client"]
			counts := out[key]
			switch labels["result"] {
			case "success":
				counts[0] = uint64(m.GetCounter().GetValue())
			case "failure":
				counts[1] = uint64(m.GetCounter().GetValue())
			default:
				counts[2] = upTo(m.GetHistogram(), 0.025)
			}
			out[key] = counts
		}
	}
	return out
}

func upTo(h *dto.Histogram, bound float64) uint64 {
	for _, b := range h.GetBucket() {
		if b.GetUpperBound() == bound {
			return b.GetCumulativeCount()
		}
	}
	return 0
}

func (s *flowStage) folded() uint64 { return s.requests.state.Flows.Folded }

func TestFlowsTellWhoSentRequestsAndHowTheyEnded(t *testing.T) {
	s := newFlowStage(t)
	for _, line := range [][4]string{
		{"b1", "200", accesslog.KindSplit, "10.0.0.7"},
		{"b1", "404", accesslog.KindSticky, "10.0.0.7"},
		{"b1", "503", accesslog.KindSplit, "10.0.0.7"},
		{"b1", "499", accesslog.KindSplit, "10.0.0.7"}, // says nothing of the version
		{"b1", "499", accesslog.KindSplit, "10.0.0.9"},
		{"b2", "200", accesslog.KindSplit, "fd00::7"},
		{"b2", "200", accesslog.KindSplit, "unix:"},
		{"b1", "200", accesslog.KindUnmatched, "10.0.0.7"},
		{"b2", "200", accesslog.KindMirrored, "-"},
		{"b2", "503", accesslog.KindDropped, "-"},
		{"b2", "200", accesslog.KindConnection, "-"},
	} {
		s.log(line[0], line[1], line[2], line[3])
	}
	s.requests.Take([]byte(unasked))
	want := map[string][3]uint64{
		"web web-stable 10.0.0.7": {2, 1, 3},
		"web web-canary fd00::7":  {1, 0, 1},
		"web web-canary ":         {1, 0, 1},
		" web-stable 10.0.0.7":    {1, 0, 1},
	}
	for _, who := range []string{"counted", "taken over from another agent"} {
		if diff := cmp.Diff(want, s.flows(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", who, diff)
		}
		checkPairs(t, &s.requests.state)
		if _, err := s.requests.Save(); err != nil {
			t.Fatal(err)
		}
		s.restart(t)
	}
}

func TestClientsBeyondTheBoundAreCountedTogether(t *testing.T) {
	s := newFlowStage(t)
	client := func(i int) string { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String() }
	for i := range maxPairs + 5 {
		s.log("b1", "200", accesslog.KindSplit, client(i))
	}
	s.log("b1", "200", accesslog.KindSplit, client(0)) // is known
	s.log("b2", "500", accesslog.KindSplit, client(0)) // is another pair
	got := s.flows(t)
	if n := len(got); n != maxPairs+2 {
		t.Errorf("%d pairs are told, want %d and one without a client for each backend", n, maxPairs)
	}
	for key, want := range map[string][3]uint64{
		"web web-stable " + client(0): {2, 0, 2}, "web web-stable ": {5, 0, 5}, "web web-canary ": {0, 1, 1},
	} {
		if got[key] != want {
			t.Errorf("%q has the counts %v, want %v", key, got[key], want)
		}
	}
	if s.folded() != 6 {
		t.Errorf("%d requests were folded, want 6", s.folded())
	}
	checkPairs(t, &s.requests.state)
}

func TestPairsWithoutRequestsAreForgotten(t *testing.T) {
	s := newFlowStage(t)
	s.log("b1", "200", accesslog.KindSplit, "10.0.0.7")
	s.log("b1", "200", accesslog.KindSplit, "10.0.0.8")
	s.clock.Step(pairAge - time.Second)
	s.log("b1", "200", accesslog.KindSplit, "10.0.0.8")
	if n := len(s.flows(t)); n != 2 {
		t.Errorf("%d pairs are told before one is old, want 2", n)
	}
	s.clock.Step(pairSweepInterval)
	s.requests.Take(nil) // the log is read, though there is nothing in it
	want := map[string][3]uint64{"web web-stable 10.0.0.8": {2, 0, 2}}
	if diff := cmp.Diff(want, s.flows(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if told := s.requests.state.Flows.told; told != 1 {
		t.Errorf("%d pairs count for the bound, want 1", told)
	}
}

// FuzzFlows has any lines add up, whoever takes over in between.
func FuzzFlows(f *testing.F) {
	f.Add([]byte(logged("b1", "200", accesslog.KindSplit, after(1)) + logged("b1", "502", accesslog.KindSticky, from("fd00::1"))))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newFlowStage(t)
		s.requests.Take(text)
		checkPairs(t, &s.requests.state)
		if _, err := s.requests.Save(); err != nil {
			t.Fatal(err)
		}
		before := s.flows(t)
		s.restart(t)
		if diff := cmp.Diff(before, s.flows(t)); diff != "" {
			t.Errorf("another agent counts on from something else (-before +after):\n%s", diff)
		}
	})
}

// A header can say anything. Whose connection it is can't be made up.
func TestTheClientOfAFlowIsWhoeverConnected(t *testing.T) {
	for _, protocol := range []traffic.Protocol{traffic.ProtocolHTTP, traffic.ProtocolHTTP2} {
		t.Run(string(protocol), func(t *testing.T) {
			r := startRig(t, rigOptions{})
			stable := serveAt(t, "web-stable", "127.0.0.1:0")
			r.want(t, protocol, stable.destination(1))
			for _, source := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.2"} {
				client := clientFrom(t, source, protocol)
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url("/"), http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "Forwarded"} {
					request.Header.Set(name, "10.0.0.7")
				}
				response, err := client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				client.CloseIdleConnections()
			}
			if err := r.shutdown(t); err != nil {
				t.Fatal(err)
			}
			s := flowStage{metrics: r.agent.metrics}
			got := map[string]uint64{}
			for key, counts := range s.flows(t) {
				got[key] = counts[0]
			}
			want := map[string]uint64{"web web-stable 127.0.0.1": 1, "web web-stable 127.0.0.2": 2}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("successes (-want +got):\n%s", diff)
			}
		})
	}
}

// clientFrom is a client with an address of its own.
func clientFrom(t *testing.T, source string, protocol traffic.Protocol) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	transport := &http.Transport{Protocols: &http.Protocols{}, DialContext: dialer.DialContext}
	transport.Protocols.SetHTTP1(protocol == traffic.ProtocolHTTP)
	transport.Protocols.SetUnencryptedHTTP2(protocol == traffic.ProtocolHTTP2)
	return &http.Client{Transport: transport}
}
