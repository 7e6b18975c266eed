// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

// benchWindow is two scrapes.
const benchWindow = 4 * time.Second

// busy is a mesh in the format of Linkerd in which each of some pods calls another one.
type busy struct {
	namespace string
	pods      int
	start     time.Time
}

func (m busy) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	var b bytes.Buffer
	n := int(time.Since(m.start)/time.Second) + 1
	for i := range m.pods {
		labels := fmt.Sprintf(`direction="outbound",namespace=%q,pod="load-%d",deployment="load",dst_namespace=%q,dst_pod="load-%d",dst_deployment="load",authority="web.%s.svc.cluster.local:80",dst_service="web"`,
			m.namespace, i, m.namespace, (i+1)%m.pods, m.namespace)
		fmt.Fprintf(&b, "response_total{%s,classification=\"success\"} %d\n", labels, 9*n)
		fmt.Fprintf(&b, "response_total{%s,classification=\"failure\"} %d\n", labels, n)
		for _, le := range []string{"10", "100", "+Inf"} {
			fmt.Fprintf(&b, "response_latency_ms_bucket{%s,le=%q} %d\n", labels, le, 10*n)
		}
	}
	_, _ = b.WriteTo(w) // the store scrapes again
}

// question is a query, and how long its answer took beside the others of its list.
type question struct {
	body []byte
	took time.Duration
}

// recorder is between the metrics server and the store, and keeps what is asked.
type recorder struct {
	proxy *httputil.ReverseProxy
	mu    sync.Mutex
	asked []question
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	begin := time.Now()
	r.proxy.ServeHTTP(w, request)
	if strings.HasSuffix(request.URL.Path, "/api/v1/query") {
		r.mu.Lock()
		r.asked = append(r.asked, question{body, time.Since(begin)})
		r.mu.Unlock()
	}
}

// take returns what was asked since the last time.
func (r *recorder) take() []question {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

// slowest is how long the slowest query took beside the others of its list, and, asked
// once more, alone.
func slowest(b *testing.B, store string, queries []question) (beside, alone time.Duration) {
	b.Helper()
	for _, q := range queries {
		beside = max(beside, q.took)
		begin := time.Now()
		request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, store+"/api/v1/query", bytes.NewReader(q.body))
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		if closed := response.Body.Close(); err != nil || closed != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("%s: %v %v", response.Status, err, closed)
		}
		alone = max(alone, time.Since(begin))
	}
	return beside, alone
}

// createPods creates them in a namespace of their own.
func createPods(b *testing.B, n int) string {
	b.Helper()
	ns := &corev1.Namespace{}
	ns.GenerateName = "busy-"
	createForTest(b, ns)
	pod := func(i int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: fmt.Sprintf("load-%d", i)}}
		p.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.invalid/app:v1"}}
		p.Spec.AutomountServiceAccountToken = new(false)
		return p
	}
	eventually(b, "the namespace takes pods", func() error { return admin.Create(b.Context(), pod(0)) })
	for i := 1; i < n; i++ {
		if err := admin.Create(b.Context(), pod(i)); err != nil {
			b.Fatal(err)
		}
	}
	return ns.Name
}

// BenchmarkListThroughTheAPIServer lists the pods of a namespace through a kube-apiserver,
// the server "serin metrics" and a real Prometheus. Of each window only the first list
// counts, for which the store is asked; the others are answered from memory. Beside it is
// how long the slowest query of that very list took, and how long it takes when each is
// asked once more, alone: the queries of a list run at the same time, and where they want
// more than the cores that there are, each takes longer than alone.
func BenchmarkListThroughTheAPIServer(b *testing.B) {
	for _, pods := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) { benchList(b, pods) })
	}
}

func benchList(b *testing.B, pods int) {
	b.Helper()
	namespace := createPods(b, pods)
	exporter := httptest.NewServer(busy{namespace, pods, time.Now()})
	b.Cleanup(exporter.Close)
	store := sourcetest.Prometheus(b, fmt.Sprintf("global: {scrape_interval: 2s, scrape_timeout: 2s}\n"+
		"scrape_configs: [{job_name: mesh, honor_labels: true, static_configs: [{targets: ['%s']}]}]\n", exporter.Listener.Addr()))
	address, err := url.Parse(store)
	if err != nil {
		b.Fatal(err)
	}
	between := &recorder{proxy: httputil.NewSingleHostReverseProxy(address)}
	front := httptest.NewServer(between)
	b.Cleanup(front.Close)
	installTraffic(b)
	c := startCommand(b, "--certificate-secret="+metricsService, "--source=prometheus", "--prometheus-profile=linkerd",
		"--prometheus-address="+front.URL, "--prometheus-scrape-interval=2s", "--window="+benchWindow.String())
	defer func() {
		if err := c.end(); err != nil {
			b.Error(err)
		}
	}()
	c.join(b)
	serving(b)
	list := func(ctx context.Context) ([]byte, error) {
		return rawClient(b).Get().AbsPath(root + "/namespaces/" + namespace + "/pods").MaxRetries(0).Do(ctx).Raw()
	}
	eventually(b, "all pods have traffic", func() error {
		body, err := list(b.Context())
		if n := bytes.Count(body, []byte(`"edge":`)); err == nil && n < pods {
			err = fmt.Errorf("%d pods", n)
		}
		return err
	})
	var lists, beside, alone []time.Duration
	between.take()
	for b.Loop() {
		for counted := false; !counted; {
			begin := time.Now()
			if _, err := list(b.Context()); err != nil {
				b.Fatal(err)
			}
			took := time.Since(begin)
			asked := between.take()
			if counted = len(asked) > 0; !counted {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			b.ReportMetric(float64(len(asked)), "queries")
			among, single := slowest(b, store, asked)
			lists, beside, alone = append(lists, took), append(beside, among), append(alone, single)
		}
	}
	b.ReportMetric(float64(p99(lists).Milliseconds()), "ms/list-p99")
	b.ReportMetric(float64(p99(beside).Milliseconds()), "ms/slowest-query-p99")
	b.ReportMetric(float64(p99(alone).Milliseconds()), "ms/slowest-query-alone-p99")
	b.ReportMetric(p99(lists).Seconds()/p99(beside).Seconds(), "ratio-p99")
	b.ReportMetric(p99(lists).Seconds()/p99(alone).Seconds(), "ratio-alone-p99")
}

// p99 is the nearest rank.
func p99(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[(99*len(times)+99)/100-1]
}
