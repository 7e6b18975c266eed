// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
)

// Rule decides about a canary, one window after the other.
type Rule interface {
	// Next takes one more window and says what to do from its end on.
	Next(w analysis.Window) policy.Action
}

// historian is a Rule that learns from what stable did before the release.
type historian interface {
	// Remember takes a window from before the release.
	Remember(w analysis.Window)
}

const (
	// Planned is how long a release takes by plan.
	Planned = 10 * time.Minute
	// longestRelease is how long a release may take that does not go by plan; then it
	// counts as neither rolled back nor promoted.
	longestRelease = 2 * Planned
	// History is how long stable was measured before: what an earlier release saw.
	History = 10 * time.Minute
)

// weights are those of the plan, a minute each.
var weights = [...]int32{5, 10, 20, 50, 50, 50, 50, 50, 50, 50}

// Outcome is what became of one simulated release. Times are since its
// beginning, and negative when it did not come to that.
type Outcome struct {
	// RolledBack is when the canary lost its traffic.
	RolledBack time.Duration
	// Promoted is when the canary got its traffic, all or all but the hold-back. A
	// canary that was promoted early may still be rolled back.
	Promoted time.Duration
	// Failed is how many requests the canary failed until it was rolled back or
	// the release was over.
	Failed int64
}

const never = -1

// play plays one release.
func play(rule Rule, traffic Traffic, r random) Outcome {
	out := Outcome{RolledBack: never, Promoted: never}
	if h, ok := rule.(historian); ok {
		for before := -History; before < 0; before += traffic.windowLength() {
			h.Remember(traffic.window(r, before, 0))
		}
	}
	step := 0
	weight := weights[step]
	for now := time.Duration(0); now < longestRelease; {
		w := traffic.window(r, now, weight)
		now += traffic.windowLength()
		out.Failed += w.Canary.Failures
		switch rule.Next(w) {
		case policy.RollBack:
			out.RolledBack = now
			return out
		case policy.Promote:
			out.Promoted = now
			weight = 100 - policy.Holdout
		case policy.Step:
			step = min(step+1, len(weights)-1)
			weight = weights[step]
		case policy.Hold:
		}
		if out.Promoted != never && now >= Planned {
			return out
		}
	}
	return out
}
