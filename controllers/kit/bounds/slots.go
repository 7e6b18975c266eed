// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/serin-dev/serin/poll/fair"
)

// mostWaiting is how many namespaces are named for each kind of work.
const mostWaiting = 5

// SlotUse reports how slots are used, and the namespaces of which most tasks wait.
type SlotUse struct {
	slots                *fair.Slots
	busy, waiting, named *prometheus.Desc
}

// NewSlotUse is a collector of metrics about the slots of one kind of work.
func NewSlotUse(work string, slots *fair.Slots) *SlotUse {
	labels := prometheus.Labels{"work": work}
	return &SlotUse{
		slots:   slots,
		busy:    prometheus.NewDesc("serin_slots_busy", "Tasks that have a slot.", nil, labels),
		waiting: prometheus.NewDesc("serin_slots_waiting", "Tasks that wait for a slot.", nil, labels),
		named:   prometheus.NewDesc("serin_slots_namespace_waiting", "Tasks that wait for a slot, of the five namespaces with most of them.", []string{"namespace"}, labels),
	}
}

// Describe implements prometheus.Collector.
func (u *SlotUse) Describe(ch chan<- *prometheus.Desc) {
	ch <- u.busy
	ch <- u.waiting
	ch <- u.named
}

// Collect implements prometheus.Collector.
func (u *SlotUse) Collect(ch chan<- prometheus.Metric) {
	loads := u.slots.Loads()
	var sum fair.Load
	for _, load := range loads {
		sum.Held += load.Held
		sum.Waiting += load.Waiting
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(u.busy, sum.Held)
	gauge(u.waiting, sum.Waiting)
	maps.DeleteFunc(loads, func(_ string, l fair.Load) bool { return l.Waiting == 0 })
	namespaces := slices.SortedFunc(maps.Keys(loads), func(a, b string) int {
		return cmp.Or(loads[b].Waiting-loads[a].Waiting, cmp.Compare(a, b))
	})
	for _, namespace := range namespaces[:min(len(namespaces), mostWaiting)] {
		gauge(u.named, loads[namespace].Waiting, namespace)
	}
}
