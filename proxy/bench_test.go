// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/controllers/traffic/nginx"
)

// BenchmarkCount reads one line of the access log into the metrics.
func BenchmarkCount(b *testing.B) {
	m := newMetrics(clocktesting.NewFakeClock(time.Unix(0, 0)))
	m.know(map[string]string{"b0123456789ab": "web-stable"})
	line := []byte("b0123456789ab\t200\t0.012\t0.010\tOK")
	b.ReportAllocs()
	for b.Loop() {
		m.count(line)
	}
}

// BenchmarkWeights puts new weights of one listener in effect.
func BenchmarkWeights(b *testing.B) {
	t := newTables(nginx.Dir(memoryDir(b)))
	r := rendering("k", nginx.Range{Target: "a", Buckets: 9450}, nginx.Range{Target: "b", Buckets: 550})
	for b.Loop() {
		if err := t.write(r); err != nil {
			b.Fatal(err)
		}
	}
}
