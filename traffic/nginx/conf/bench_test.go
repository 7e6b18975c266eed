// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"testing"

	"github.com/serin-dev/serin/traffic"
)

func BenchmarkRender(b *testing.B) {
	split := testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 95), testDestination("web-canary", 5)))
	opts := testOptions()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(split, opts); err != nil {
			b.Fatal(err)
		}
	}
}
