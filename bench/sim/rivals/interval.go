// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"time"

	"github.com/serin-dev/serin/analysis"
)

// Interval is how often the tools measure in their documentation's examples.
const Interval = time.Minute

// counts are requests and failures of one version.
type counts struct{ requests, failures float64 }

func (c *counts) add(a analysis.Variant) {
	c.requests += float64(a.Requests)
	c.failures += float64(a.Failures)
}

// rate is the share that failed: NaN without requests, as a query to Prometheus
// would answer.
func (c counts) rate() float64 { return c.failures / c.requests }

// interval adds up the windows of one interval.
type interval struct {
	lasted         time.Duration
	canary, stable counts
	latency        histogram
}

// add takes one more window and reports whether the interval is over; then the
// next call begins a new one.
func (i *interval) add(w analysis.Window) bool {
	if i.lasted >= Interval {
		*i = interval{}
	}
	i.lasted += w.End.Sub(w.Start)
	i.canary.add(w.Canary)
	i.stable.add(w.Stable)
	i.latency.add(w.Canary.Latency)
	return i.lasted >= Interval
}
