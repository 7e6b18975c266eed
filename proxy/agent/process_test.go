// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// TestAPortThatIsTakenIsReportedAndTheRestStaysServed has the Service gain a
// port that another process listens on.
func TestAPortThatIsTakenIsReportedAndTheRestStaysServed(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	b := startBackend(t, "web-stable", nil)
	r.want(t, traffic.ProtocolHTTP, b.destination(1))
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := int32(taken.Addr().(*net.TCPAddr).Port)
	want := feed.Want{Split: traffic.Split{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, Generation: 2, Root: "web",
		Ports: []traffic.Port{
			{Number: 80, TargetNumber: r.port, Protocol: traffic.ProtocolHTTP, Destinations: []traffic.Destination{b.destination(1)}},
			{Number: 81, TargetNumber: port, Protocol: traffic.ProtocolHTTP, Destinations: []traffic.Destination{b.destination(1)}},
		},
	}}
	r.wants <- want
	got := r.awaitReport(t)
	if got.Generation != 1 || !strings.Contains(got.Message, fmt.Sprintf("listen on tcp 0.0.0.0:%d: bind: address already in use", port)) {
		t.Errorf("report %+v, want generation 1 and the reason", got)
	}
	if code, body := get(t, r.url("/")); code != http.StatusOK {
		t.Errorf("the other port: %d %s", code, body)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if got := r.awaitReport(t); got != served(want) {
		t.Errorf("once the port is free: report %+v", got)
	}
}

// TestAnAgentStartsOverInAUsedFolder starts where a killed one left everything,
// as a container does that is started again in its pod.
func TestAnAgentStartsOverInAUsedFolder(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{leftovers: []string{
		"nginx-7/status.sock", "nginx-7/master", "nginx-1/nginx.conf", "counts.json", "state.json", "access.log", "full/x/00",
	}})
	r.want(t, traffic.ProtocolHTTP, startBackend(t, "web-stable", nil).destination(1))
	get(t, r.url("/"))
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[string]int{"web-stable": {"200": 1}}, r.requests(t)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	for _, name := range []string{"nginx-7", "full"} {
		if _, err := os.Stat(filepath.Join(string(r.dir), name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

func TestMetricsAsTheManagerReadsThem(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	r.want(t, traffic.ProtocolHTTP, startBackend(t, "web-stable", nil).destination(1), startBackend(t, "web-canary", nil).destination(0))
	for range 3 {
		get(t, r.url("/"))
	}
	proxytest.Eventually(t, "the requests are counted", func() bool { return r.requests(t)["web-stable"]["200"] == 3 })
	families := r.scrape(t)
	backends := map[string]float64{}
	for _, m := range families["serin_proxy_backend_info"].GetMetric() {
		backends[proxytest.Labels(m)["backend"]] = m.GetGauge().GetValue()
	}
	if diff := cmp.Diff(map[string]float64{"web-stable": 1, "web-canary": 1}, backends); diff != "" {
		t.Errorf("serin_proxy_backend_info (-want +got):\n%s", diff)
	}
	observed := map[string]uint64{}
	for _, m := range families["serin_proxy_request_duration_seconds"].GetMetric() {
		observed[proxytest.Labels(m)["backend"]] = m.GetHistogram().GetSampleCount()
	}
	if diff := cmp.Diff(map[string]uint64{"web-stable": 3, "web-canary": 0}, observed); diff != "" {
		t.Errorf("serin_proxy_request_duration_seconds (-want +got):\n%s", diff)
	}
	if got := families["serin_proxy_generation"].GetMetric()[0].GetGauge().GetValue(); got != 1 {
		t.Errorf("serin_proxy_generation %f", got)
	}
	if got := families["serin_proxy_log_lines_dropped_total"].GetMetric()[0].GetCounter().GetValue(); got != 0 {
		t.Errorf("serin_proxy_log_lines_dropped_total %f", got)
	}
	if got := families["serin_proxy_start_time_seconds"].GetMetric()[0].GetGauge().GetValue(); got < 1e9 {
		t.Errorf("serin_proxy_start_time_seconds %f", got)
	}
}
