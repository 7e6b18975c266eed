// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/serin-dev/serin/poll/fair"
)

func TestTheNamespacesWithMostTasksThatWaitAreNamed(t *testing.T) {
	slots := fair.NewSlots(fair.Limits{Slots: 2})
	registry := prometheus.NewPedanticRegistry()
	for _, c := range []prometheus.Collector{NewSlotUse("metrics", slots), NewSlotUse("outbound", fair.NewSlots(fair.Limits{Slots: 2}))} {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	end := make(chan struct{})
	defer close(end)
	for i := range 8 {
		for range i + 1 {
			slots.Go(fmt.Sprint("n", i), func() { <-end })
		}
	}
	const want = `
# HELP serin_slots_busy Tasks that have a slot.
# TYPE serin_slots_busy gauge
serin_slots_busy{work="metrics"} 2
serin_slots_busy{work="outbound"} 0
# HELP serin_slots_namespace_waiting Tasks that wait for a slot, of the five namespaces with most of them.
# TYPE serin_slots_namespace_waiting gauge
serin_slots_namespace_waiting{namespace="n3",work="metrics"} 4
serin_slots_namespace_waiting{namespace="n4",work="metrics"} 5
serin_slots_namespace_waiting{namespace="n5",work="metrics"} 6
serin_slots_namespace_waiting{namespace="n6",work="metrics"} 7
serin_slots_namespace_waiting{namespace="n7",work="metrics"} 8
# HELP serin_slots_waiting Tasks that wait for a slot.
# TYPE serin_slots_waiting gauge
serin_slots_waiting{work="metrics"} 34
serin_slots_waiting{work="outbound"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"serin_slots_busy{work}` | gauge", "serin_slots_waiting{work}` | gauge", "serin_slots_namespace_waiting{work,namespace}` | gauge"} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/metrics.md has no row %q", row)
		}
	}
}
