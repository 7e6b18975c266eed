// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/counts"
	"github.com/serin-dev/serin/proxy/exposition"
	"github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// crew is a supervisor with its agent and nginx, as processes of their own.
type crew struct {
	crewConfig
	port       int32
	supervisor *exec.Cmd
	ended      chan error
	generation int64
	// log is the file that all of them log to.
	log string
}

func startCrew(t *testing.T) *crew {
	t.Helper()
	dir := proxytest.MemoryDir(t)
	c := &crew{crewConfig: crewConfig{
		Render: conf.Options{
			Dir: conf.Dir(filepath.Join(dir, "run")), StreamModule: streamModule, Workers: 2, Connections: 4096, OpenFiles: 8192,
		},
		Binary: nginxBinary(t), Status: fmt.Sprintf("127.0.0.1:%d", proxytest.FreePort(t)),
		Wants: filepath.Join(dir, "wants"), Reports: filepath.Join(dir, "reports"),
	}, port: proxytest.FreePort(t), ended: make(chan error, 1)}
	if os.Geteuid() == 0 {
		c.Render.User = "root"
	}
	c.log = filepath.Join(dir, "log")
	c.startSupervisor(t)
	t.Cleanup(func() {
		_ = c.stop(t) // the tests that care have asked
		if t.Failed() {
			t.Logf("the crew's log:\n%s", c.logged(t))
		}
	})
	return c
}

// startSupervisor starts the process that is the first of a container.
func (c *crew) startSupervisor(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(c.crewConfig)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // not a pipe, which nginx would hold open
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the processes have it
	supervisor := exec.Command(os.Args[0])
	supervisor.Env = append(os.Environ(), crewVariable+"="+string(text))
	supervisor.Stdout, supervisor.Stderr = log, log
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	c.supervisor = supervisor
	go func() { c.ended <- supervisor.Wait() }()
}

// stop ends the crew as a container is stopped, and returns how it ended.
func (c *crew) stop(t *testing.T) error {
	t.Helper()
	_ = c.supervisor.Process.Signal(syscall.SIGTERM) // it may have ended
	deadline := time.After(40 * time.Second)
	for {
		select {
		case err := <-c.ended:
			c.ended <- err
			return err
		case <-time.After(20 * time.Millisecond): // the last counts wait to be fetched
			if response, err := http.Get("http://" + c.Status + "/metrics"); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		case <-deadline:
			t.Error("the supervisor did not end within 40 s")
			return c.supervisor.Process.Kill()
		}
	}
}

// serve asks for backends and returns when they are live.
func (c *crew) serve(t *testing.T, destinations ...traffic.Destination) {
	t.Helper()
	c.generation++
	c.writeWant(t, feed.Want{Split: traffic.Split{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, Root: "web", Generation: c.generation,
		Ports: []traffic.Port{{Number: 80, TargetNumber: c.port, Protocol: traffic.ProtocolHTTP, Destinations: destinations}},
	}})
	c.awaitGeneration(t)
}

func (c *crew) awaitGeneration(t *testing.T) {
	t.Helper()
	want := fmt.Sprintf("%d ", c.generation)
	proxytest.Eventually(t, "generation "+want+" is live", func() bool { return c.lastReport(t) == want })
}

// killAgent kills the agent, and returns when another runs in its place.
func (c *crew) killAgent(t *testing.T) {
	t.Helper()
	var agent int
	proxytest.Eventually(t, "an agent runs", func() bool {
		for _, pid := range children(t, c.supervisor.Process.Pid) {
			if title, err := readProc(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && !strings.HasPrefix(string(title), "nginx: ") {
				agent = pid
			}
		}
		return agent != 0
	})
	if err := os.Remove(c.Reports); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.awaitGeneration(t)
}

// killMaster kills nginx's master process, and returns when another one runs in
// its place and the workers of the killed one accept nothing any more.
func (c *crew) killMaster(t *testing.T) {
	t.Helper()
	masters := c.masters(t)
	killed := masters[len(masters)-1]
	if err := syscall.Kill(killed.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	proxytest.Eventually(t, "another nginx runs in its place", func() bool {
		members, err := killed.Members()
		if err != nil {
			t.Fatal(err)
		}
		newest := c.masters(t)
		return nginxproc.Accepting(members) == 0 && newest[len(newest)-1].PID != killed.PID
	})
}

// counted are the requests that were counted, from what is left when all has ended.
func (c *crew) counted(t *testing.T) map[string]map[string]uint64 {
	t.Helper()
	s := c.saved(t)
	if n := dropped(s); n != 0 {
		t.Errorf("%d lines were dropped", n)
	}
	return requestsOf(s)
}

// dropped are the lines of the log that were not understood.
func dropped(s exposition.Families) int {
	return int(s[exposition.Prefix+"log_lines_dropped_total"].GetMetric()[0].GetCounter().GetValue())
}

// requestsOf are the requests by Service and status.
func requestsOf(s exposition.Families) map[string]map[string]uint64 {
	out := map[string]map[string]uint64{}
	for service, codes := range byCode(s, exposition.Requests) {
		out[service] = map[string]uint64{}
		for code, n := range codes {
			out[service][code] = uint64(n)
		}
	}
	return out
}

// saved is what is left of the counts when all has ended.
func (c *crew) saved(t *testing.T) exposition.Families {
	t.Helper()
	left := counts.New(c.Render.Dir.Counts(), clock.RealClock{})
	if err := left.Load(); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(left)
	s := proxytest.Gather(t, registry)
	proxytest.CheckFlows(t, s)
	if unrouted := s[exposition.Prefix+"unrouted_requests_total"].GetMetric(); len(unrouted) != 0 {
		t.Errorf("%v were answered by the proxy", unrouted)
	}
	return s
}

// logged is what the supervisor, its agents and nginx have logged.
func (c *crew) logged(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// answeredBy is what backends say that they answered.
func answeredBy(backends ...*backend) map[string]map[string]uint64 {
	counts := map[string]map[string]uint64{}
	for _, b := range backends {
		counts[b.service] = map[string]uint64{}
		for code, n := range b.counts() {
			counts[b.service][code] = uint64(n)
		}
	}
	return counts
}

// awaitRequests waits until the backends have answered so many more.
func awaitRequests(t *testing.T, more uint64, backends ...*backend) {
	t.Helper()
	before := sumOf(backends...)
	proxytest.Eventually(t, fmt.Sprintf("%d more requests", more), func() bool { return sumOf(backends...) >= before+more })
}

// sumOf is how many requests the backends answered.
func sumOf(backends ...*backend) (sum uint64) {
	for _, codes := range answeredBy(backends...) {
		for _, n := range codes {
			sum += n
		}
	}
	return sum
}

// killedWorkers is the metric of that name.
func (c *crew) killedWorkers(t *testing.T) float64 {
	t.Helper()
	const name = "serin_proxy_workers_killed_total"
	response, err := http.Get("http://" + c.Status + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil || families[name] == nil {
		t.Fatalf("no metric %s (%v)", name, err)
	}
	return families[name].GetMetric()[0].GetCounter().GetValue()
}

// deviation is how far a binomial count is from what is expected, in standard deviations.
func deviation(hits, of int, share float64) float64 {
	return (float64(hits) - float64(of)*share) / math.Sqrt(float64(of)*share*(1-share))
}

// TestNothingIsLostWhileAllCrashes sends about a thousand requests a second, of
// every kind, through twenty-five changes of weights, one of backends, and crashes of the
// agent and of nginx's master.
func TestNothingIsLostWhileAllCrashes(t *testing.T) {
	t.Parallel()
	c := startCrew(t)
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	c.serve(t, stable.destination(100), canary.destination(0))
	var phase atomic.Int64
	finish := startPhasedLoads(t, fmt.Sprintf("http://127.0.0.1:%d/", c.port), 5, &atomic.Bool{}, &phase)
	shares := []int32{10, 25, 50, 75, 90}
	for change := range 25 {
		share := shares[change%len(shares)]
		phase.Store(0)
		c.serve(t, stable.destination(100-share), canary.destination(share))
		phase.Store(int64(share))
		switch change {
		case 5, 16:
			c.killAgent(t)
		case 8, 20:
			c.killMaster(t)
		case 12:
			c.serve(t, stable.destination(100-share), canary.destination(share), startBackend(t, "web-extra", nil).destination(0))
		}
		awaitRequests(t, 100, stable, canary) // some hundred by each weight, all rounds together
	}
	phase.Store(0)
	loads := finish()
	total := answered(t, loads)
	if got := c.killedWorkers(t); got != 0 {
		t.Errorf("%f workers were killed, want none", got)
	}
	if err := c.stop(t); err != nil {
		t.Errorf("the supervisor ended with %v", err)
	}
	want := answeredBy(stable, canary)
	got := c.counted(t)
	delete(got, "web-extra")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts differ from what the backends answered (-want +got):\n%s", diff)
	}
	if sum := want["web-stable"]["200"] + want["web-canary"]["200"]; int(sum) != total {
		t.Errorf("the backends answered %d requests, the clients got %d answers", sum, total)
	}
	checkShares(t, loads, shares)
}

// checkShares compares what each weight gave with the weight, and the sum of all. Chance
// leaves each of these bands in one of a million runs.
func checkShares(t *testing.T, loads []*load, shares []int32) {
	t.Helper()
	squares := 0.0
	for _, share := range shares {
		hits, of := 0, 0
		for _, l := range loads {
			of += l.bodies[int64(share)]["web-stable"] + l.bodies[int64(share)]["web-canary"]
			hits += l.bodies[int64(share)]["web-canary"]
		}
		if of < 300 {
			t.Errorf("only %d requests were sent at %d %%; the test proves little", of, share)
			continue
		}
		z := deviation(hits, of, float64(share)/100)
		squares += z * z
		t.Logf("%d %%: %d of %d, %.2f standard deviations off", share, hits, of, z)
		if math.Abs(z) > 5 {
			t.Errorf("%d of %d requests went to the canary at %d %%", hits, of, share)
		}
	}
	if squares > 36 { // of chi-squared with five degrees of freedom
		t.Errorf("the shares are %.1f off in all, want at most 36", squares)
	}
}

// TestWhenEveryProcessOfNginxIsKilledClientsWait has nothing left that listens but
// the supervisor: new connections wait for the next nginx.
func TestWhenEveryProcessOfNginxIsKilledClientsWait(t *testing.T) {
	t.Parallel()
	c := startCrew(t)
	stable := startBackend(t, "web-stable", nil)
	c.serve(t, stable.destination(1))
	url := fmt.Sprintf("http://127.0.0.1:%d/", c.port)
	get(t, url)
	proxytest.Eventually(t, "the request is counted", func() bool { return c.killedWorkers(t) == 0 })
	masters := c.masters(t)
	if err := syscall.Kill(-masters[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for range 20 {
		response, err := client.Get(url)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("a request after that: %v %v", response, err)
		}
		_ = response.Body.Close()
	}
	proxytest.Eventually(t, "the killed workers are told", func() bool { return c.killedWorkers(t) == 2 })
}

// TestAKilledWorkerLosesOnlyWhatItHad kills one of two workers under load.
func TestAKilledWorkerLosesOnlyWhatItHad(t *testing.T) {
	t.Parallel()
	c := startCrew(t)
	stable := startBackend(t, "web-stable", nil)
	c.serve(t, stable.destination(1))
	const senders = 5
	finish := startPhasedLoads(t, fmt.Sprintf("http://127.0.0.1:%d/", c.port), senders, &atomic.Bool{}, nil)
	proxytest.Eventually(t, "requests are answered", func() bool { return stable.counts()["200"] > 200 })
	members, err := c.masters(t)[0].Members()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Accepting {
			if err := syscall.Kill(m.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	proxytest.Eventually(t, "the killed worker is told", func() bool { return c.killedWorkers(t) == 1 })
	before := stable.counts()["200"]
	proxytest.Eventually(t, "requests go on", func() bool { return stable.counts()["200"] > before+1000 })
	failed := 0
	for _, l := range finish() {
		t.Log(l)
		failed += len(l.failures)
	}
	if inFlight := 4 * senders; failed > inFlight {
		t.Errorf("%d requests failed; at most %d were on their way", failed, inFlight)
	}
}

// TestAnAgentThatCantStartEndsItsSupervisor lets the container see what is wrong.
func TestAnAgentThatCantStartEndsItsSupervisor(t *testing.T) {
	t.Parallel()
	c := startCrew(t)
	_ = c.stop(t) // only its configuration is of use
	c.Status = "nowhere"
	text, err := json.Marshal(c.crewConfig)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), crewVariable+"="+string(text))
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nowhere") {
		t.Errorf("got %v and\n%s", err, out)
	}
}
