// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source/scrape"
	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/poll"
	"github.com/serin-dev/serin/proxy/exposition"
	"github.com/serin-dev/serin/traffic"
)

// fleet are proxies that answer what the test writes.
type fleet struct {
	t    *testing.T
	mu   sync.Mutex
	pods map[string]*proxy
}

type proxy struct {
	start float64
	text  string
	err   error
}

// pairText is one pair in the format of a proxy.
func pairText(client, backend string, success, failure, fast, total int) string {
	labels := fmt.Sprintf(`namespace="shop",apex="web",backend=%q,client=%q,server=""`, backend, client)
	return fmt.Sprintf(exposition.FlowRequests+"{%[1]s,result=\"success\"} %[2]d\n"+exposition.FlowRequests+"{%[1]s,result=\"failure\"} %[3]d\n", labels, success, failure) +
		fmt.Sprintf(exposition.FlowDurations+"_bucket{%[1]s,le=\"0.1\"} %[2]d\n"+exposition.FlowDurations+"_bucket{%[1]s,le=\"1\"} %[3]d\n"+exposition.FlowDurations+"_bucket{%[1]s,le=\"+Inf\"} %[3]d\n"+exposition.FlowDurations+"_sum{%[1]s} 1\n"+exposition.FlowDurations+"_count{%[1]s} %[3]d\n", labels, fast, total)
}

// text is a whole answer of such pairs, which have to be sorted into their families.
func text(pairs ...string) string {
	var requests, durations []string
	for line := range strings.SplitSeq(strings.Join(pairs, ""), "\n") {
		if strings.HasPrefix(line, exposition.FlowRequests) {
			requests = append(requests, line)
		} else if line != "" {
			durations = append(durations, line)
		}
	}
	return "# TYPE " + exposition.FlowRequests + " counter\n" + strings.Join(requests, "\n") + "\n# TYPE " + exposition.FlowDurations + " histogram\n" + strings.Join(durations, "\n") + "\n"
}

func (f *fleet) list() ([]Proxy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var pods []Proxy
	for name := range f.pods {
		pods = append(pods, Proxy{Pod: analysis.Pod{UID: name, Address: name}, Namespace: "shop"})
	}
	return pods, nil
}

// Read parses with the client that is used in earnest.
func (f *fleet) Read(ctx context.Context, address string, use func(exposition.Families) error, names ...string) error {
	f.mu.Lock()
	p := *f.pods[address]
	f.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	return serve(ctx, f.t, use, fmt.Sprintf("# TYPE serin_proxy_start_time_seconds gauge\nserin_proxy_start_time_seconds %v\n", p.start)+p.text, names...)
}

func serve(ctx context.Context, t *testing.T, use func(exposition.Families) error, text string, names ...string) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(r.URL.Query()["name[]"], exposition.FlowRequests) {
			t.Errorf("asked for %v", r.URL)
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, text)
	}))
	defer server.Close()
	c := scrape.New(scrape.Options{MaxBody: MaxBody, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	return c.Read(ctx, server.Listener.Addr().String(), use, names...)
}

func (f *fleet) set(name string, p proxy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods == nil {
		f.pods = map[string]*proxy{}
	}
	f.pods[name] = &p
}

func newSource(f *fleet, c poll.Clock) *Source {
	return New(Options{Reader: f, Proxies: f.list, Clock: c, Locate: func(a netip.Addr) (types.NamespacedName, bool) {
		return types.NamespacedName{Namespace: "shop", Name: "load"}, a == netip.MustParseAddr("10.0.0.1")
	}})
}

// stepper is a clock that the test moves on.
type stepper struct{ now time.Time }

func (s *stepper) Now() time.Time                       { return s.now }
func (s *stepper) After(time.Duration) <-chan time.Time { return nil }

func lines(s observe.Snapshot) []string {
	var out []string
	for _, f := range s.Flows {
		line := fmt.Sprintf("%s %s/%s(%v) → %s/%s %s %s: %v+%v", f.Side, f.Client.Namespace, f.Client.Pod, f.Client.Address, f.Server.Namespace, f.Server.Service, f.Apex, f.Backend, f.Success, f.Failure)
		if f.Latency != nil {
			line += fmt.Sprint(" ", f.Latency.LE, f.Latency.Counts, f.Latency.Total)
		}
		out = append(out, line)
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}

func TestAWindowIsWhatAllProxiesCountedInIt(t *testing.T) {
	f, c := &fleet{t: t}, &stepper{now: time.Unix(1e9, 0)}
	s := newSource(f, c)
	problem := func(want string) {
		t.Helper()
		var unavailable *observe.UnavailableError
		if _, err := s.Observe(t.Context(), "shop"); !errors.As(err, &unavailable) || unavailable.Message != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	turn := func(partial string, want ...string) {
		t.Helper()
		c.now = c.now.Add(15 * time.Second)
		s.turn(t.Context())
		got, err := s.Observe(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if got.Partial != partial || !got.End.Equal(c.now) {
			t.Errorf("%q until %v", got.Partial, got.End)
		}
		if diff := gocmp.Diff(want, lines(got)); diff != "" {
			t.Error(diff)
		}
	}
	problem("the proxies are read for the first time; ask again in 15s")
	f.set("a", proxy{start: 1, text: text(pairText("10.0.0.1", "web-stable", 100, 10, 50, 110))})
	f.set("b", proxy{start: 1, text: text(pairText("10.0.0.1", "web-stable", 7, 0, 7, 7))})
	s.turn(t.Context())
	problem("the proxies are read for the first time; ask again in 15s")

	f.set("a", proxy{start: 1, text: text(pairText("10.0.0.1", "web-stable", 120, 11, 60, 131), pairText("192.0.2.1", "web-canary", 3, 1, 0, 4))})
	f.set("b", proxy{start: 1, text: text(pairText("10.0.0.1", "web-stable", 8, 0, 8, 8))})
	turn("",
		"client /(192.0.2.1) → shop/web-canary web web-canary: 3+1 [0.1 1] [0 4] 4",
		"client shop/load(10.0.0.1) → shop/web-stable web web-stable: 21+1 [0.1 1] [11 22] 22")
	turn("") // nothing happened

	f.set("a", proxy{start: 1, text: text(pairText("10.0.0.1", "web-stable", 120, 11, 60, 131), pairText("192.0.2.1", "web-canary", 3, 1, 0, 4),
		strings.ReplaceAll(pairText("192.0.2.1", "web-stable", 2, 0, 2, 2), `apex="web"`, `apex=""`))})
	turn("", "client /(192.0.2.1) → shop/web-stable web-stable web-stable: 2+0 [0.1 1] [2 2] 2") // no split

	f.set("b", proxy{start: 2, text: text(pairText("10.0.0.1", "web-stable", 500, 0, 0, 500))})
	f.set("a", proxy{start: 1, text: text(pairText("", "web-stable", 1, 0, 1, 1), pairText("10.0.0.1", "web-stable", 121, 11, 60, 132))})
	turn("1 of 2 proxies began in the window; their requests are missing",
		"client /(invalid IP) → shop/web-stable web web-stable: 1+0 [0.1 1] [1 1] 1",
		"client shop/load(10.0.0.1) → shop/web-stable web web-stable: 1+0 [0.1 1] [0 1] 1")

	f.set("b", proxy{start: 2, text: text(pairText("10.0.0.1", "web-stable", 400, 0, 0, 400))})
	f.set("c", proxy{start: 2, err: errors.New("proxy x: did not answer in time")})
	turn("1 of 3 proxies could not be read, 1 of 3 proxies were reset in it; their requests are missing")

	for _, name := range []string{"a", "b"} {
		f.set(name, proxy{err: errors.New("proxy x: did not answer in time")})
	}
	c.now = c.now.Add(15 * time.Second)
	s.turn(t.Context())
	problem("none of 3 proxies could be read: proxy x: did not answer in time")
}

func TestNoProxiesIsNoTraffic(t *testing.T) {
	c := &stepper{now: time.Unix(1e9, 0)}
	s := newSource(&fleet{t: t}, c)
	s.turn(t.Context())
	c.now = c.now.Add(15 * time.Second)
	s.turn(t.Context())
	if got, err := s.Observe(t.Context(), ""); err != nil || len(got.Flows) > 0 || got.Partial != "" {
		t.Errorf("%+v %v", got, err)
	}
	c.now = c.now.Add(time.Minute)
	if _, err := s.Observe(t.Context(), ""); err == nil {
		t.Error("an old window is told")
	}
}

func TestProxiesAreReadInEachWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds []time.Time
		begun := time.Now()
		s := New(Options{Clock: clock.RealClock{}, Proxies: func() ([]Proxy, error) {
			rounds = append(rounds, time.Now())
			time.Sleep(time.Second)
			return nil, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		time.Sleep(50 * time.Second)
		cancel()
		<-done
		var want []time.Time
		for i := range 4 {
			want = append(want, begun.Add(time.Duration(i)*15*time.Second))
		}
		if diff := gocmp.Diff(want, rounds); diff != "" {
			t.Error(diff)
		}
	})
}

// tarpit are proxies of which those of one namespace never answer.
type tarpit struct {
	mu    sync.Mutex
	begun time.Time
	reads map[string][]time.Duration
}

func (p *tarpit) Read(ctx context.Context, address string, _ func(exposition.Families) error, _ ...string) error {
	if strings.HasPrefix(address, "hangs") {
		ctx, cancel := context.WithTimeout(ctx, scrape.DefaultTimeout)
		defer cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(50 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads[address] = append(p.reads[address], time.Since(p.begun))
	return ctx.Err()
}

// Of ten tenants, one has fifty proxies that never answer. Those of the others are read in
// each window.
func TestATarpitOfOneTenantDelaysTheReadingsOfNoOther(t *testing.T) {
	const hanging, tenants = 50, 10
	synctest.Test(t, func(t *testing.T) {
		p := &tarpit{begun: time.Now(), reads: map[string][]time.Duration{}}
		var pods []Proxy
		for i := range hanging {
			pods = append(pods, Proxy{Pod: analysis.Pod{Address: fmt.Sprint("hangs", i)}, Namespace: "tarpit"})
		}
		for i := range tenants - 1 {
			pods = append(pods, Proxy{Pod: analysis.Pod{Address: fmt.Sprint("tenant", i)}, Namespace: fmt.Sprint("tenant", i)})
		}
		s := New(Options{Clock: clock.RealClock{}, Reader: p, Proxies: func() ([]Proxy, error) { return pods, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		time.Sleep(4*DefaultWindow - time.Second)
		cancel()
		<-done
		for i := range tenants - 1 {
			reads := p.reads[fmt.Sprint("tenant", i)]
			if len(reads) != 4 {
				t.Errorf("tenant %d: %d readings in four windows", i, len(reads))
			}
			for j, at := range reads {
				if late := at - time.Duration(j)*DefaultWindow; late >= time.Second {
					t.Errorf("tenant %d: reading %d is %s late", i, j, late)
				}
			}
		}
	})
}

func TestAnswersThatCannotBeAreRefused(t *testing.T) {
	good := pairText("10.0.0.1", "web", 1, 1, 1, 2)
	for _, tt := range []struct{ name, text, want string }{
		{"a client that is no address", strings.ReplaceAll(good, "10.0.0.1", "load"), "serin_proxy_flow_requests_total: a series has a label client or server that is not an address"},
		{"a result of another kind", strings.ReplaceAll(good, `"success"`, `"maybe"`), "serin_proxy_flow_requests_total: a series has a label result that is neither success nor failure"},
		{"less than no requests", strings.Replace(good, "} 1\n", "} -1\n", 1), "serin_proxy_flow_requests_total: not a count: a whole number that is not negative was expected"},
		{"another namespace than that of the proxy's pod", strings.ReplaceAll(good, `namespace="shop"`, `namespace="bank"`), "a series is of another namespace than the proxy's own"},
		{"more pairs than a proxy tells", manyPairs(maxPairs + 1), "serin_proxy_flow_requests_total: there are more than 1200 pairs, which no proxy of Serin reports"},
		{"a name that no object has", strings.ReplaceAll(good, `backend="web"`, `backend="`+strings.Repeat("a", maxName+1)+`"`), "serin_proxy_flow_requests_total: a series has a name of more than 253 characters"},
		{"other bounds", good + strings.ReplaceAll(pairText("10.0.0.2", "web", 1, 1, 1, 2), `le="1"`, `le="2"`), "serin_proxy_flow_duration_seconds: histograms with other bounds, or two of one pair"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var refused error
			err := serve(t.Context(), t, func(f exposition.Families) error {
				_, refused = parse(f, "shop")
				return nil
			}, text(tt.text), exposition.FlowRequests)
			if err != nil {
				t.Fatal(err)
			}
			if refused == nil || refused.Error() != tt.want {
				t.Errorf("%v", refused)
			}
		})
	}
}

// A pod of one tenant answers in a proxy's place, and names a pod of another tenant as the
// server: the counts would be those of the other one's TrafficSplits and pods.
func TestAProxyTellsOfServersInItsOwnNamespaceOnly(t *testing.T) {
	server := netip.MustParseAddr("10.0.9.9")
	for namespace, want := range map[string]observe.Party{
		"shop": {Namespace: "shop", Pod: "web-1", Address: server, Service: "web-canary"},
		"bank": {Namespace: "shop", Service: "web-canary"},
	} {
		w := window{pairs: map[pair]analysis.Variant{
			{namespace: unique.Make("shop"), apex: unique.Make("web"), backend: unique.Make("web-canary"), server: server}: {Requests: 5},
		}}
		flows := w.flows(func(netip.Addr) (types.NamespacedName, bool) {
			return types.NamespacedName{Namespace: namespace, Name: "web-1"}, true
		})
		if len(flows) != 1 || flows[0].Server != want {
			t.Errorf("a pod of %s: %+v", namespace, flows)
		}
	}
}

// manyPairs are requests of n clients.
func manyPairs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s{namespace=\"shop\",apex=\"web\",backend=\"web\",client=\"10.0.%d.%d\",server=\"\",result=\"success\"} 1\n", exposition.FlowRequests, i/256, i%256)
	}
	return b.String()
}

func TestTheRunningProxiesOfAllNamespacesAreFound(t *testing.T) {
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, p := range []struct {
		name, ip, split string
		phase           corev1.PodPhase
	}{{"a", "10.0.0.1", "web", corev1.PodRunning}, {"b", "fd00::1", "shop", corev1.PodRunning}, {"c", "", "web", corev1.PodPending}, {"d", "10.0.0.2", "", corev1.PodRunning}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: "ns-" + p.name, UID: types.UID(p.name)}, Status: corev1.PodStatus{PodIP: p.ip, Phase: p.phase}}
		if p.split != "" {
			pod.Labels = map[string]string{traffic.LabelProxy: p.split}
		}
		if err := pods.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Proxies(listers.NewPodLister(pods), 15020)
	if err != nil {
		t.Fatal(err)
	}
	got, err := list()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b Proxy) int { return cmp.Compare(a.UID, b.UID) })
	want := []Proxy{
		{Pod: analysis.Pod{UID: "a", Address: "10.0.0.1:15020"}, Namespace: "ns-a"},
		{Pod: analysis.Pod{UID: "b", Address: "[fd00::1]:15020"}, Namespace: "ns-b"},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkMemory measures what is kept for each pod that calls one Service through the
// two proxies of its split.
func BenchmarkMemory(b *testing.B) {
	const clients = 1000
	r := func(from int64) round {
		out := round{readings: map[string]reading{}}
		for _, name := range []string{"a@1", "b@1"} {
			le := make([]float64, 14)
			got := reading{le: le, pairs: map[pair]analysis.Variant{}}
			for i := range clients {
				key, err := pairOf(nil)
				if err != nil {
					b.Fatal(err)
				}
				key.client = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
				got.pairs[key] = analysis.Variant{Requests: from, Latency: &analysis.Histogram{LE: le, Counts: make([]int64, len(le)+1)}}
			}
			out.readings[name] = got
		}
		return out
	}
	var held uint64
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := New(Options{Clock: &stepper{}})
		s.last = r(2)
		w := between(r(1), s.last)
		s.snapshot = observe.Snapshot{Flows: w.flows(nil)}
		w = window{}
		runtime.GC()
		runtime.ReadMemStats(&after)
		held = after.HeapAlloc - before.HeapAlloc
		if len(s.snapshot.Flows) != clients || s.snapshot.Flows[0].Side != metricsv1.SideClient {
			b.Fatal(len(s.snapshot.Flows))
		}
		runtime.KeepAlive(s)
	}
	b.ReportMetric(float64(held)/clients, "B/client")
}
