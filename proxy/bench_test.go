// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/traffic/nginx"
)

// BenchmarkCount reads a line of the access log into the metrics: as they are under load,
// of some clients and of times that are alike, and such that all are different.
func BenchmarkCount(b *testing.B) {
	for name, different := range map[string]int{"alike": 200, "different": 10_000} {
		b.Run(name, func(b *testing.B) {
			t := newCounter("", clock.RealClock{})
			t.state.Services["b0123456789ab"] = "web-stable"
			var chunk []byte
			for i := range 10_000 {
				i %= different
				chunk = append(chunk, logged("b0123456789ab", "200", accesslog.KindSplit, after(i/10), from(fmt.Sprint("10.244.17.", i%10)))...)
			}
			b.ReportAllocs()
			for range b.N/10_000 + 1 {
				t.Take(chunk)
			}
		})
	}
}

// BenchmarkWeights puts new weights of one listener in effect.
func BenchmarkWeights(b *testing.B) {
	t := testTables(b)
	table := weights(nginx.Range{Target: "a", Buckets: 9450}, nginx.Range{Target: "b", Buckets: 550})
	for b.Loop() {
		if err := t.write(table); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScrape answers /metrics with as many pairs as there can be, to one who reads
// them and to one who asks for something else.
func BenchmarkScrape(b *testing.B) {
	m := newMetrics("", clock.RealClock{})
	m.requests.state.Root = types.NamespacedName{Namespace: "shop", Name: "web"}
	m.requests.state.Services["b0123456789ab"] = "web-stable"
	for i := range maxPairs {
		client := fmt.Sprintf("10.244.%d.%d", 100+i/250, i%250)
		m.requests.Take([]byte(logged("b0123456789ab", "200", accesslog.KindSplit, after(12), from(client))))
	}
	status := newStatusServer(m)
	for name, query := range map[string]string{"all": "", "requests": "?name[]=serin_proxy_requests_total"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				status.http.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics"+query, http.NoBody))
				b.ReportMetric(float64(w.Body.Len()), "B/answer")
			}
		})
	}
}
