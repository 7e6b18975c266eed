// SPDX-License-Identifier: Apache-2.0

package counts

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/proxy/exposition"
)

// BenchmarkCount reads a line of the access log into the metrics: as they are under load,
// of some clients and of times that are alike, and such that all are different.
func BenchmarkCount(b *testing.B) {
	for name, different := range map[string]int{"alike": 200, "different": 10_000} {
		b.Run(name, func(b *testing.B) {
			t := New("", clock.RealClock{})
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

// BenchmarkScrape answers /metrics with as many pairs as there can be, to one who reads
// them and to one who asks for something else.
func BenchmarkScrape(b *testing.B) {
	c := New("", clock.RealClock{})
	c.state.Root = types.NamespacedName{Namespace: "shop", Name: "web"}
	c.state.Services["b0123456789ab"] = "web-stable"
	for i := range maxPairs {
		client := fmt.Sprintf("10.244.%d.%d", 100+i/250, i%250)
		c.Take([]byte(logged("b0123456789ab", "200", accesslog.KindSplit, after(12), from(client))))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	for name, query := range map[string]string{"all": "", "requests": "?name[]=" + exposition.Requests} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics"+query, http.NoBody))
				b.ReportMetric(float64(w.Body.Len()), "B/answer")
			}
		})
	}
}
