// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/evidence"
	"github.com/serin-dev/serin/controllers/release/state"
)

// Supersede ends a release whose version was replaced, if it has not ended already. One
// that never began leaves no trace.
func Supersede(d *state.Draft) {
	previous := d.Status.Canary.Revision
	if d.Begun() && !d.Decided(v1alpha1.ActionRollBack) {
		const why = "A newer version superseded it."
		NotifyOutcome(d, v1alpha1.NotifySuperseded, why)
		CloseRelease(d, v1alpha1.OutcomeSuperseded, previous, why)
		d.Note(false, v1alpha1.ReasonSuperseded, "Revision %s is superseded by the newer revision %s", previous, d.Revision)
	}
	ForgetRelease(d)
}

// ForgetRelease clears what belongs to one release.
func ForgetRelease(d *state.Draft) {
	evidence.KeepDispersion(d)
	st := &d.Status
	st.Canary, st.Step, st.Decision, st.Analysis = nil, nil, nil, nil
	st.Interventions, st.Hooks = nil, nil
}

// decide records the verdict on a revision. It is written before it is acted on.
func decide(d *state.Draft, a v1alpha1.DecisionAction, reason, message string) {
	d.Status.Decision = &v1alpha1.Decision{
		Revision: d.Revision, Action: a, Reason: reason, Message: kit.Shorten(message), Time: d.Micro(),
	}
	if d.Split.Presence == kit.Present {
		d.Status.Decision.Weight = max(d.Split.Observed, 0)
	}
}

// DecidePromotion decides that the canary becomes stable.
func DecidePromotion(d *state.Draft, reason, why string) {
	decide(d, v1alpha1.ActionPromote, reason, "Promoted: "+why+".")
	d.Note(false, v1alpha1.ReasonPromoting, "Revision %s is being promoted: %s", d.Revision, why)
}

// Promoted closes a release: the canary is stable now, as the note says.
func Promoted(d *state.Draft, note string, args ...any) {
	message := d.Status.Decision.Message
	NotifyOutcome(d, v1alpha1.NotifyPromoted, message)
	CloseRelease(d, v1alpha1.OutcomePromoted, d.Status.Decision.Revision, message)
	d.Note(false, "Promoted", note, args...)
	ForgetRelease(d)
	d.Measure = false
}

// Reject decides to roll back: the status is written first. What was to be done in this
// look is not.
func Reject(d *state.Draft, reason, why string) {
	decide(d, v1alpha1.ActionRollBack, reason, why)
	NotifyOutcome(d, v1alpha1.NotifyRolledBack, why)
	CloseRelease(d, v1alpha1.OutcomeRolledBack, d.Revision, why)
	d.Note(true, v1alpha1.ReasonRollingBack, "Revision %s is being rolled back: %s", d.Revision, why)
	d.After, d.Measure, d.Questions = 0, false, nil
}

// RejectAgain records a rollback that is known from the version alone, by its reason and message
// with ": " between them. It sends no notification, since the rollback was notified once.
func RejectAgain(d *state.Draft, revision, why string) {
	reason, message, _ := strings.Cut(why, ": ")
	d.Status.Decision = &v1alpha1.Decision{Revision: revision, Action: v1alpha1.ActionRollBack, Reason: reason, Message: kit.Shorten(message), Time: d.Micro()}
}
