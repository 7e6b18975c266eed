// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
)

// critical is the one-sided 1 % point of the normal distribution: the error rate
// that Serin has by default.
const critical = 2.3263478740408408

// ZTest is the two-proportion z-test with the pooled variance, of any textbook,
// on the totals of the release so far: the canary is worse when it fails more
// often by more than 2.33 standard errors.
type ZTest struct {
	// Peek is whether it looks every interval, as one should not, rather than
	// once, at the planned end.
	Peek bool

	schedule
	interval       interval
	canary, stable counts
}

// NewFixedZ looks once, at the planned end.
func NewFixedZ(plan time.Duration) *ZTest { return &ZTest{schedule: schedule{plan: plan}} }

// NewPeekingZ looks every interval with the same critical value.
func NewPeekingZ(plan time.Duration) *ZTest {
	return &ZTest{Peek: true, schedule: schedule{plan: plan}}
}

// Next judges one more window.
func (z *ZTest) Next(w analysis.Window) policy.Action {
	z.canary.add(w.Canary)
	z.stable.add(w.Stable)
	planned := z.next(w)
	looks := planned == policy.Promote || z.interval.add(w) && z.Peek
	if looks && z.score() > critical {
		return policy.RollBack
	}
	return planned
}

// score is the z statistic; 0 when there is nothing to compare.
func (z *ZTest) score() float64 {
	n, m := z.canary.requests, z.stable.requests
	pooled := (z.canary.failures + z.stable.failures) / (n + m)
	deviation := math.Sqrt(pooled * (1 - pooled) * (1/n + 1/m))
	if !(deviation > 0) || math.IsInf(deviation, 1) {
		return 0
	}
	return (z.canary.rate() - z.stable.rate()) / deviation
}
