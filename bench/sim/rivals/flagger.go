// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
)

// Flagger is the rule of Flagger (pkg/controller/scheduler.go,
// scheduler_metrics.go, and the canary of its tutorials):
//
//   - Every interval the success rate of the canary alone is compared with a
//     minimum, and its p99 with a maximum. A value outside, and no value at all,
//     is a failed check.
//   - Failed checks are counted over the whole release and never forgotten. A
//     check that fails also halts the advancement: the weight stays.
//   - Whether the count has reached the threshold is looked at before the checks
//     of a tick, so the rollback comes one interval after the check that filled
//     it.
type Flagger struct {
	// MinSuccess is the lowest good success rate: 0.99.
	MinSuccess float64
	// MaxP99 is the highest good p99, in seconds: 0.5. Checked where latencies
	// are measured.
	MaxP99 float64
	// Threshold is how many failed checks roll back: 5.
	Threshold int
	// Checks is how many checks must be passed before the promotion.
	Checks int

	interval       interval
	failed, passed int
}

// NewFlagger is the rule with the parameters of Flagger's documentation, for a
// release that is planned to last so long.
func NewFlagger(plan time.Duration) *Flagger {
	return &Flagger{MinSuccess: .99, MaxP99: .5, Threshold: 5, Checks: int(plan / Interval)}
}

// Next judges one more window.
func (f *Flagger) Next(w analysis.Window) policy.Action {
	if !f.interval.add(w) {
		return policy.Hold
	}
	if f.failed >= f.Threshold {
		return policy.RollBack
	}
	if !f.check() {
		f.failed++
		return policy.Hold
	}
	if f.passed++; f.passed >= f.Checks {
		return policy.Promote
	}
	return policy.Step
}

// check is false for NaN too: no values found is a failed check.
func (f *Flagger) check() bool {
	ok := 1-f.interval.canary.rate() >= f.MinSuccess
	if f.interval.latency.measured() {
		ok = ok && f.interval.latency.quantile(.99) <= f.MaxP99
	}
	return ok
}
