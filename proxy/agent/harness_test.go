// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/proxy/exposition"
	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

const streamModule = "/usr/lib/nginx/modules/ngx_stream_module.so"

// nginxBinary finds nginx; without it the test is not possible.
func nginxBinary(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		testenv.Missing(t, "nginx is not installed", "on Debian: apt-get install nginx libnginx-mod-stream")
	}
	if _, err := os.Stat(streamModule); err != nil {
		testenv.Missing(t, "nginx's stream module is not installed: "+err.Error(), "on Debian: apt-get install libnginx-mod-stream")
	}
	return binary
}

// memoryFeed is a Feed without an API.
type memoryFeed struct {
	wants   chan feed.Want
	reports chan confirmation.Served
}

func newMemoryFeed() *memoryFeed {
	return &memoryFeed{wants: make(chan feed.Want, 1), reports: make(chan confirmation.Served, 1000)}
}

func (f *memoryFeed) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (f *memoryFeed) Wants() <-chan feed.Want       { return f.wants }
func (f *memoryFeed) Report(s confirmation.Served)  { f.reports <- s }

// awaitReport returns the next report.
func (f *memoryFeed) awaitReport(t *testing.T) confirmation.Served {
	t.Helper()
	select {
	case s := <-f.reports:
		return s
	case <-time.After(time.Minute):
		t.Fatal("the agent did not report within a minute")
		return confirmation.Served{}
	}
}

// backend is a real server that counts what it answers.
type backend struct {
	service string
	address *net.TCPAddr
	mu      sync.Mutex
	codes   map[string]int
	server  *http.Server
}

// startBackend serves handler, or "ok", and counts answers by status.
func startBackend(t *testing.T, service string, handler http.Handler) *backend {
	t.Helper()
	return startBackendWith(t, service, handler, func(*http.Server) {})
}

// startBackendWith serves by a server with settings of its own.
func startBackendWith(t *testing.T, service string, handler http.Handler, set func(*http.Server)) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{service: service, address: l.Addr().(*net.TCPAddr), codes: map[string]int{}}
	if handler == nil {
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, service)
		})
	}
	b.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cw := &codeWriter{ResponseWriter: w, code: http.StatusOK}
		handler.ServeHTTP(cw, r)
		b.mu.Lock()
		b.codes[strconv.Itoa(cw.code)]++
		b.mu.Unlock()
	})}
	set(b.server)
	go b.server.Serve(l) //nolint:errcheck // ends with the test
	t.Cleanup(func() { _ = b.server.Close() })
	return b
}

type codeWriter struct {
	http.ResponseWriter
	code int
}

func (w *codeWriter) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *codeWriter) Flush()                      { _ = http.NewResponseController(w.ResponseWriter).Flush() }
func (w *codeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (b *backend) counts() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.codes)
}

func (b *backend) destination(weight int32) traffic.Destination {
	return traffic.Destination{Service: b.service, Address: b.address.IP.String(), Port: int32(b.address.Port), Weight: weight}
}

// rig is an agent with a real nginx.
type rig struct {
	*memoryFeed
	agent      *Agent
	dir        conf.Dir
	port       int32
	status     string
	generation int64
	stop       context.CancelFunc
	done       chan error
	log        *logWriter
	// stopped is when the agent had nginx stop.
	stopped atomic.Pointer[time.Time]
}

// stopObserver notes when it is told to stop.
type stopObserver struct {
	*nginxproc.Process
	rig *rig
}

func (s stopObserver) Stop(ctx context.Context) error {
	now := s.rig.agent.Clock.Now()
	s.rig.stopped.Store(&now)
	return s.Process.Stop(ctx)
}

type rigOptions struct {
	drain, drainLimit, settle time.Duration
	// clock of the agent. Default: a real one.
	clock clock.WithTicker
	// memory of the pod; 0 for no bound.
	memory int64
	// leftovers are files that a previous agent left, relative to the folder.
	leftovers []string
}

// startRig starts an agent that serves nothing yet.
func startRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	binary := nginxBinary(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	render := conf.Options{
		Dir: conf.Dir(filepath.Join(proxytest.MemoryDir(t), "run")), StreamModule: streamModule, Workers: 2, Connections: 4096, Memory: o.memory, OpenFiles: 8192, IPv6: true,
	}
	if os.Geteuid() == 0 {
		render.User = "root"
	}
	if o.clock == nil {
		o.clock = clock.RealClock{}
	}
	r := &rig{memoryFeed: newMemoryFeed(), dir: render.Dir, port: proxytest.FreePort(t), status: listener.Addr().String(), done: make(chan error, 1), log: &logWriter{t: t}}
	r.agent = New(Options{
		Render: render, Feed: r, Served: r.Report, Listener: listener,
		Server: func(killed func(int)) (Server, error) {
			p, err := nginxproc.New(nginxproc.Options{
				Binary: binary, Dir: render.Dir, Workers: render.Workers, Log: r.log, Killed: killed, Files: fdstore.None{}, Clock: clock.RealClock{},
			})
			return stopObserver{p, r}, err
		},
		Drain: o.drain, DrainLimit: o.drainLimit, QuitTimeout: 20 * time.Second, ApplyTimeout: 20 * time.Second, Settle: o.settle,
		Clock: o.clock, Log: testr.New(t),
	})
	for _, name := range o.leftovers {
		file := filepath.Join(string(render.Dir), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("left over\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() { r.done <- r.agent.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-r.done; err != nil {
			t.Logf("the agent ended with %v", err)
		}
	})
	return r
}

// logWriter shows nginx's error log with the test that caused it.
type logWriter struct {
	t    *testing.T
	mu   sync.Mutex
	text strings.Builder
}

func (w *logWriter) Write(p []byte) (int, error) {
	w.t.Logf("nginx: %s", p)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// count is how often something was logged.
func (w *logWriter) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.text.String(), what)
}

// want asks for a split of the rig's port and returns when it is live.
func (r *rig) want(t *testing.T, protocol traffic.Protocol, destinations ...traffic.Destination) {
	t.Helper()
	r.wantSplit(t, traffic.Split{
		Ports: []traffic.Port{{Number: 80, TargetNumber: r.port, Protocol: protocol, Destinations: destinations}},
	})
}

// wantSplit asks for a split and returns when it is live.
func (r *rig) wantSplit(t *testing.T, split traffic.Split) {
	t.Helper()
	r.generation++
	split.NamespacedName = types.NamespacedName{Namespace: "shop", Name: "web"}
	split.Root, split.Generation = "web", r.generation
	want := feed.Want{Split: split}
	r.wants <- want
	if got := r.awaitReport(t); got != served(want) {
		t.Fatalf("report %+v, want %+v", got, served(want))
	}
}

// served is the report of an agent that serves what is wanted.
func served(want feed.Want) confirmation.Served {
	return confirmation.Served{
		Generation: want.Split.Generation, Configuration: want.Split.Digest(), Message: traffic.Summary(want.Problems),
	}
}

func (r *rig) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", r.port, path) }

// shutdown stops the agent and returns what Run returned.
func (r *rig) shutdown(t *testing.T) error {
	t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		r.done <- nil // for the cleanup
		return err
	case <-time.After(time.Minute):
		t.Fatal("the agent did not stop within a minute")
		return nil
	}
}

// requests reads serin_proxy_requests_total by backend and code. What they are is also
// the sum over all clients, whenever one looks.
func (r *rig) requests(t *testing.T) map[string]map[string]int {
	t.Helper()
	metrics := r.gather(t)
	proxytest.CheckFlows(t, metrics)
	return byCode(metrics, exposition.Requests)
}

// gather reads the metrics, also of an agent that has ended.
func (r *rig) gather(t *testing.T) exposition.Families {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(r.agent.udp.Collectors(), r.agent.counts)...)
	return proxytest.Gather(t, registry)
}

// counter reads a counter by backend and code.
func (r *rig) counter(t *testing.T, name string) map[string]map[string]int {
	t.Helper()
	return byCode(r.gather(t), name)
}

func byCode(metrics exposition.Families, name string) map[string]map[string]int {
	counts := map[string]map[string]int{}
	for _, m := range metrics[name].GetMetric() {
		labels := proxytest.Labels(m)
		if counts[labels["backend"]] == nil {
			counts[labels["backend"]] = map[string]int{}
		}
		counts[labels["backend"]][labels["code"]] = int(m.GetCounter().GetValue())
	}
	return counts
}

// scrape reads /metrics as the manager does.
func (r *rig) scrape(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := http.Get("http://" + r.status + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}
