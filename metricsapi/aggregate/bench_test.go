// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// BenchmarkList makes the list of ten thousand pods that call one Service each.
func BenchmarkList(b *testing.B) {
	const n = 10_000
	w := newWorld()
	var flows []observe.Flow
	for i := range n {
		address := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		w.pod(key("shop", fmt.Sprintf("pod-%d", i)), address.String(), map[observe.Kind]string{
			observe.Deployments: fmt.Sprintf("d-%d", i%100), observe.Services: fmt.Sprintf("s-%d", i%100),
		})
		flows = append(flows, observe.Flow{
			Side: metricsv1.SideClient, Client: observe.Party{Address: address}, Server: observe.Party{Namespace: "shop", Service: fmt.Sprintf("s-%d", i%100)},
			Success: 10, Latency: histogram(1, 5, 10, 10),
		})
	}
	s := snapshot(flows...)
	for b.Loop() {
		if items := Metrics(s, w, observe.Request{Kind: observe.Pods, Namespace: "shop", Selector: labels.Everything()}); len(items) != n {
			b.Fatal(len(items))
		}
	}
}
