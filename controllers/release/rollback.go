// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// cause is why a release is rolled back.
type cause struct{ reason, message string }

// failed reports whether the canary answered too badly since the last look, at whatever
// stage the release is.
func failed(s *snapshot) bool { return failure(s) != cause{} }

// failure is why the canary has to be rolled back; empty when it does not.
func failure(s *snapshot) cause {
	if s.failing && !s.pauseOnFailure {
		return cause{string(s.verdict.Reason), s.verdict.Explain()}
	}
	called, scales := s.called(), s.scales()
	switch {
	case !called || !scales && !s.begun():
		return cause{}
	case s.canary == nil:
		return cause{v1alpha1.ReasonCanaryUnavailable, "the canary's ReplicaSet was deleted while it got traffic"}
	case s.canary.Available == 0 && (!scales || s.Workload.Replicas > 0):
		return cause{v1alpha1.ReasonCanaryUnavailable, "none of the canary's pods was available any more while it got traffic"}
	}
	return cause{}
}

// reject decides to roll back: the status is written first. What was to be done in this
// look is not.
func reject(d *draft, reason, why string) {
	decide(d, v1alpha1.ActionRollBack, reason, why)
	notifyOutcome(d, v1alpha1.NotifyRolledBack, why)
	closeRelease(d, v1alpha1.OutcomeRolledBack, d.revision, why)
	d.Note(true, v1alpha1.ReasonRollingBack, "Revision %s is being rolled back: %s", d.revision, why)
	d.After, d.measure, d.questions = 0, false, nil
}

// rollingBack says how far the rollback is.
func rollingBack(d *draft) {
	decision := d.status.Decision
	d.State.Reason, d.State.Progress = v1alpha1.ReasonRollingBack, true
	d.State.Message = kit.Shorten(fmt.Sprintf("Rolling back revision %s (%s). %s", decision.Revision, decision.Message, d.State.Message))
}

// rampDownStages is how many writes a gradual rollback takes.
const rampDownStages = 10

// rampDown takes the canary's weight back evenly over spec.strategy.rollBackOver, and
// reports whether that is over. It never waits for the canary: one that can't
// answer loses its traffic at once.
func rampDown(d *draft) (done bool) {
	weight, look := rampedDown(&d.snapshot)
	if weight <= 0 {
		return true
	}
	d.wake(look)
	d.request(Route{Weight: weight})
	d.Say(v1alpha1.ReasonRollingBack, "%d %% of the traffic still goes to the canary, less and less until %s.", weight, endTime(d.status.Decision.Time.Add(d.rollBackOver), d.rollBackOver))
	return false
}

// rampedDown is the weight that a gradual rollback leaves the canary now, and until when.
func rampedDown(s *snapshot) (weight int32, until time.Time) {
	decision, asked := s.status.Decision, s.Split.Requested
	if s.rollBackOver <= 0 || decision.Weight <= 0 || s.Split.Presence != kit.Present || s.Split.Deleting ||
		asked.Weight <= 0 || len(asked.Matches) > 0 || s.canary == nil || s.canary.Available == 0 {
		return 0, until
	}
	since := max(s.Now.Sub(decision.Time.Time), 0)
	if since >= s.rollBackOver {
		return 0, until
	}
	stage := 1 + int64(since)*rampDownStages/int64(s.rollBackOver)
	weight = min(asked.Weight, int32(int64(decision.Weight)*(rampDownStages-stage)/rampDownStages)) //nolint:gosec // at most 100
	return weight, decision.Time.Add(time.Duration(stage) * s.rollBackOver / rampDownStages)
}
