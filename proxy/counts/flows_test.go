// SPDX-License-Identifier: Apache-2.0

package counts

import (
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/proxy/exposition"
	"github.com/serin-dev/serin/proxy/proxytest"
)

// flowStage is a counter in the test's hands.
type flowStage struct {
	requests *Counter
	registry *prometheus.Registry
	clock    *clocktesting.FakeClock
	file     string
}

func newFlowStage(t *testing.T) *flowStage {
	t.Helper()
	s := &flowStage{clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), file: filepath.Join(t.TempDir(), "counts")}
	s.restart(t)
	if err := s.requests.Know(types.NamespacedName{Namespace: "shop", Name: "web"}, map[string]string{"b1": "web-stable", "b2": "web-canary"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// restart begins another agent.
func (s *flowStage) restart(t *testing.T) {
	t.Helper()
	s.requests, s.registry = New(s.file, s.clock), prometheus.NewRegistry()
	s.registry.MustRegister(s.requests)
	if err := s.requests.Load(); err != nil {
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
		column := map[string]int{exposition.FlowRequests: 0, exposition.FlowDurations: 2}
		if _, ok := column[f.GetName()]; !ok {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := proxytest.Labels(m)
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
	for _, who := range []string{"counted", "read by another agent"} {
		if diff := cmp.Diff(want, s.flows(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", who, diff)
		}
		proxytest.CheckFlows(t, proxytest.Gather(t, s.registry))
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
	proxytest.CheckFlows(t, proxytest.Gather(t, s.registry))
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
	if distinct := s.requests.state.Flows.distinct; distinct != 1 {
		t.Errorf("%d pairs count for the bound, want 1", distinct)
	}
}

// FuzzFlows has any lines add up, whichever agent goes on in between.
func FuzzFlows(f *testing.F) {
	f.Add([]byte(logged("b1", "200", accesslog.KindSplit, after(1)) + logged("b1", "502", accesslog.KindSticky, from("fd00::1"))))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newFlowStage(t)
		s.requests.Take(text)
		proxytest.CheckFlows(t, proxytest.Gather(t, s.registry))
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
