// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// RollingBack says how far the rollback is.
func RollingBack(d *state.Draft) {
	decision := d.Status.Decision
	d.State.Reason, d.State.Progress = v1alpha1.ReasonRollingBack, true
	d.State.Message = kit.Shorten(fmt.Sprintf("Rolling back revision %s (%s). %s", decision.Revision, decision.Message, d.State.Message))
}

// rampDownStages is how many writes a gradual rollback takes.
const rampDownStages = 10

// RampDown lowers the canary's weight evenly over spec.strategy.rollBackOver, and
// reports whether that is over. It never waits for the canary: a canary that can't
// answer loses its traffic at once.
func RampDown(d *state.Draft) (done bool) {
	weight, look := rampedDown(&d.Snapshot)
	if weight <= 0 {
		return true
	}
	d.Wake(look)
	d.Request(strategy.Route{Weight: weight})
	d.Say(v1alpha1.ReasonRollingBack, "%d %% of the traffic still goes to the canary, falling to 0 %% by %s.", weight, state.EndTime(d.Status.Decision.Time.Add(d.RollBackOver), d.RollBackOver))
	return false
}

// rampedDown is the weight that a gradual rollback leaves the canary now, and until when.
func rampedDown(s *state.Snapshot) (weight int32, until time.Time) {
	decision, now := s.Status.Decision, s.Split.Requested
	if s.RollBackOver <= 0 || decision.Weight <= 0 || s.Split.Presence != kit.Present || s.Split.Deleting ||
		now.Weight <= 0 || len(now.Matches) > 0 || s.Canary == nil || s.Canary.Available == 0 {
		return 0, until
	}
	since := max(s.Now.Sub(decision.Time.Time), 0)
	if since >= s.RollBackOver {
		return 0, until
	}
	stage := 1 + int64(since)*rampDownStages/int64(s.RollBackOver)
	weight = min(now.Weight, int32(int64(decision.Weight)*(rampDownStages-stage)/rampDownStages)) //nolint:gosec // at most 100
	return weight, decision.Time.Add(time.Duration(stage) * s.RollBackOver / rampDownStages)
}
