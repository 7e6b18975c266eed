// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
)

// Argo is an AnalysisRun of Argo Rollouts in the background of a release
// (analysis/analysis.go, utils/evaluate/evaluate.go):
//
//   - Every interval each metric is measured. With only a successCondition, a
//     measurement for which it is not true has failed; NaN is not true.
//   - A metric fails, and the release is aborted at once, when more than
//     failureLimit of its measurements failed, in a row or not.
//   - The weights rise meanwhile, as scheduled.
//
// The first measurement is taken after one interval (initialDelay); without that
// it would measure a canary that has not had traffic yet.
type Argo struct {
	// Success is the successCondition on what was counted in the interval.
	Success func(canary, stable counts) bool
	// MaxP99 is the successCondition of a second metric, in seconds: 0.5.
	// Measured where latencies are.
	MaxP99 float64
	// FailureLimit is how many measurements of a metric may fail: 3.
	FailureLimit int

	schedule
	interval             interval
	failed, failedOnTime int
}

// NewArgo has the successCondition "result >= 0.99" on the canary's success
// rate, and failureLimit 3, from the documentation of Argo Rollouts.
func NewArgo(plan time.Duration) *Argo {
	return &Argo{
		Success:      func(canary, _ counts) bool { return 1-canary.rate() >= .99 },
		MaxP99:       .5,
		FailureLimit: 3, schedule: schedule{plan: plan},
	}
}

// NewArgoDifference has a successCondition on the difference of the failure
// rates, canary − stable, of at most half a percentage point: the tolerance that
// Serin has by default.
func NewArgoDifference(plan time.Duration) *Argo {
	a := NewArgo(plan)
	a.Success = func(canary, stable counts) bool { return canary.rate()-stable.rate() <= .005 }
	return a
}

// Next judges one more window.
func (a *Argo) Next(w analysis.Window) policy.Action {
	planned := a.next(w)
	if !a.interval.add(w) {
		return planned
	}
	if !a.Success(a.interval.canary, a.interval.stable) {
		a.failed++
	}
	if a.interval.latency.measured() && !(a.interval.latency.quantile(.99) <= a.MaxP99) {
		a.failedOnTime++
	}
	if max(a.failed, a.failedOnTime) > a.FailureLimit {
		return policy.RollBack
	}
	return planned
}

// schedule takes a step every interval, whatever is measured, and promotes when
// the plan is over.
type schedule struct {
	plan, lasted time.Duration
}

func (s *schedule) next(w analysis.Window) policy.Action {
	before := s.lasted
	s.lasted += w.End.Sub(w.Start)
	switch {
	case s.lasted >= s.plan:
		return policy.Promote
	case s.lasted/Interval > before/Interval:
		return policy.Step
	default:
		return policy.Hold
	}
}
