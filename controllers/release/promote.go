// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Why a revision is promoted.
const (
	reasonPassed         = "Passed"
	reasonPromotedFully  = "PromotedFully"
	reasonRollbackWindow = "RollbackWindow"
)

// decide records the verdict on a revision. It is written before it is acted on.
func decide(d *draft, a v1alpha1.DecisionAction, reason, message string) {
	d.status.Decision = &v1alpha1.Decision{
		Revision: d.revision, Action: a, Reason: reason, Message: kit.Shorten(message), Time: d.micro(),
	}
	if d.Split.Presence == kit.Present {
		d.status.Decision.Weight = max(d.Split.Observed, 0)
	}
}

// decidePromotion decides that the canary becomes stable.
func decidePromotion(d *draft, reason, why string) {
	decide(d, v1alpha1.ActionPromote, reason, "Promoted: "+why+".")
	d.Note(false, v1alpha1.ReasonPromoting, "Revision %s is being promoted: %s", d.revision, why)
}

// promote has the target take the canary over, once nothing is in the way of all traffic.
func promote(d *draft) (another bool) {
	d.State.Progress = true
	upkeep(d)
	if d.status.Step == nil {
		d.enterStep(len(d.steps))
	}
	if admitted, ended := admit(d, Route{Weight: fullWeight}, d.Workload.Replicas); !admitted {
		return ended
	}
	return targetOf(d.Rollout).act(d, phasePromoting)
}

// promoted closes a release: the canary is stable now, as the note says.
func promoted(d *draft, note string, args ...any) {
	message := d.status.Decision.Message
	notifyOutcome(d, v1alpha1.NotifyPromoted, message)
	closeRelease(d, v1alpha1.OutcomePromoted, d.status.Decision.Revision, message)
	d.Note(false, "Promoted", note, args...)
	forgetRelease(d)
	d.measure = false
}
