// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/traffic"
)

func TestGroupMembers(t *testing.T) {
	proc := t.TempDir()
	process := func(pid int, stat, cmdline string) {
		folder := filepath.Join(proc, strconv.Itoa(pid))
		if err := errors.Join(
			os.MkdirAll(folder, 0o700),
			os.WriteFile(filepath.Join(folder, "stat"), []byte(stat), 0o600),
			os.WriteFile(filepath.Join(folder, "cmdline"), []byte(cmdline), 0o600),
		); err != nil {
			t.Fatal(err)
		}
	}
	process(10, "10 (nginx) S 1 10 1 0", "nginx: master process nginx\x00")
	process(11, "11 (nginx) S 10 10 1 0", "nginx: worker process\x00")
	process(12, "12 (nginx) S 10 10 1 0", "nginx: worker process is shutting down\x00")
	process(13, "13 (nginx) S 10 10 1 0", "nginx: master process nginx\x00") // just forked
	process(14, "14 (a) 10 b) S 10 9 1 0", "nginx: worker process\x00")
	process(15, "", "")                                                        // just ended
	process(16, "16 (nginx) S 1 10 1 0", "nginx: worker process\x00")          // its master was killed
	process(17, "17 (nginx) Z 1 10 1 0", "")                                   // not collected yet
	process(18, "18 (sh) S 1 10 1 0", "sh\x00-c\x00nginx: worker process\x00") // somebody else's
	if err := os.Mkdir(filepath.Join(proc, "19"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(proc, "self"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := groupMembers(proc, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []member{{10, false}, {11, true}, {12, false}, {13, false}, {16, true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(member{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := accepting(got); n != 2 {
		t.Errorf("%d accept connections, want 2", n)
	}
}

func TestEmergencies(t *testing.T) {
	var out strings.Builder
	e := &emergencies{out: &out}
	cause := errors.New("cause")
	if got := e.explain(cause); got.Error() != "cause" {
		t.Errorf("got %v", got)
	}
	text := "2026/01/01 [error] 1#1: something\n2026/01/01 [emerg] 1#1: bind() failed\n"
	if _, err := io.WriteString(e, text); err != nil {
		t.Fatal(err)
	}
	if got := e.explain(cause); !errors.Is(got, cause) || got.Error() != "cause; nginx says: 1#1: bind() failed" {
		t.Errorf("got %v", got)
	}
	if diff := cmp.Diff(text, out.String()); diff != "" {
		t.Errorf("passed on (-want +got):\n%s", diff)
	}
	e.reset()
	if got := e.explain(cause); got.Error() != "cause" {
		t.Errorf("after a reset: %v", got)
	}
}

// TestAPortThatIsTakenIsReportedAndTheRestStaysServed has the Service gain a
// port that somebody else listens on.
func TestAPortThatIsTakenIsReportedAndTheRestStaysServed(t *testing.T) {
	r := startRig(t, rigOptions{})
	b := startBackend(t, "web-stable", nil)
	r.want(t, traffic.ProtocolHTTP, b.destination(1))
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := int32(taken.Addr().(*net.TCPAddr).Port)
	want := Want{Split: traffic.Split{
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
	r := startRig(t, rigOptions{})
	r.want(t, traffic.ProtocolHTTP, startBackend(t, "web-stable", nil).destination(1), startBackend(t, "web-canary", nil).destination(0))
	for range 3 {
		get(t, r.url("/"))
	}
	eventually(t, "the requests are counted", func() bool { return r.requests(t)["web-stable"]["200"] == 3 })
	families := r.scrape(t)
	backends := map[string]float64{}
	for _, m := range families["serin_proxy_backend_info"].GetMetric() {
		backends[labelsOf(m)["backend"]] = m.GetGauge().GetValue()
	}
	if diff := cmp.Diff(map[string]float64{"web-stable": 1, "web-canary": 1}, backends); diff != "" {
		t.Errorf("serin_proxy_backend_info (-want +got):\n%s", diff)
	}
	observed := map[string]uint64{}
	for _, m := range families["serin_proxy_request_duration_seconds"].GetMetric() {
		observed[labelsOf(m)["backend"]] = m.GetHistogram().GetSampleCount()
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
