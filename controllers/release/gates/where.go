// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"

	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Where says how far the release is.
func Where(s *state.Snapshot) string {
	step := s.Status.Step
	here := strategy.Route{Weight: step.Weight, Matches: step.Matches}
	if step.ProgrammedAt == nil {
		here = s.LastRequested()
	}
	return fmt.Sprintf("Step %s: %s goes to the canary", step.Summary, Reached(s, here))
}

// Reached is what the canary really gets. Without a router, that is the share of its
// pods.
func Reached(s *state.Snapshot, r strategy.Route) string {
	if !s.ByReplicas || s.Canary == nil {
		return r.Share()
	}
	stable := int32(0)
	if rs := s.Stable(); rs != nil {
		stable = rs.Available
	}
	got := strategy.Share(s.Canary.Available, stable)
	text := fmt.Sprintf("%d %% of the traffic (%d of %d pods)", got, s.Canary.Available, s.Canary.Available+stable)
	if got != r.Weight {
		text += fmt.Sprintf(" instead of %d %%", r.Weight)
	}
	return text
}
