// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// maxInterventions is how many user actions are kept for one release.
const maxInterventions = 20

// effect is what becomes of a user action.
type effect int

const (
	pending  effect = iota // it can't be applied yet
	applied                // it is
	declined               // it never will be
)

// UserAction is the user action that was not seen yet, nil if there is none.
func UserAction(s *state.Snapshot) *v1alpha1.Control {
	c, seen := s.Rollout.Spec.Control, s.Status.Control
	if c == nil || seen != nil && sameControl(seen.Control, *c) {
		return nil
	}
	return c
}

// sameControl compares what is wanted; who wants it makes no new action. Another
// reason does: that is how the same revision is retried twice.
func sameControl(a, b v1alpha1.Control) bool {
	return a.Revision == b.Revision && a.Action == b.Action && ptr.Equal(a.StepIndex, b.StepIndex) && a.Reason == b.Reason
}

// Applicable reports whether there is a user action that can be answered now. While the
// Rollout can't be served, only an abort is.
func Applicable(s *state.Snapshot) bool {
	c := UserAction(s)
	if c == nil || s.Refusal != nil && c.Action != v1alpha1.ControlAbort {
		return false
	}
	e, _ := effectOf(s, c)
	return e != pending
}

// effectOf says what becomes of a user action on the release in progress.
func effectOf(s *state.Snapshot, c *v1alpha1.Control) (e effect, why string) {
	switch {
	case c.Revision != s.Revision:
		return declined, fmt.Sprintf("revision %s is being released; read status.canary.revision", s.Revision)
	case c.Action == v1alpha1.ControlRetry:
		return declined, "the revision was not rolled back; Retry is for one that was"
	case c.Action == v1alpha1.ControlAbort:
		return applied, ""
	case s.Decided(v1alpha1.ActionPromote):
		return effectOnPromotion(s, c)
	case !s.Begun() || s.Status.Step == nil:
		return pending, ""
	case c.Action == v1alpha1.ControlPromoteFull:
		return applied, ""
	}
	return effectOnStep(s, c)
}

// effectOnPromotion: only a promotion that the analysis holds can be insisted on.
func effectOnPromotion(s *state.Snapshot, c *v1alpha1.Control) (e effect, why string) {
	a := s.Status.Analysis
	held := s.Status.Step != nil && a != nil && (a.Verdict == string(judge.Fail) || a.Reason == string(judge.ReasonSuspected))
	if !held || s.Accepted() || c.Action == v1alpha1.ControlPromote {
		return declined, "the revision is being promoted already"
	}
	return applied, ""
}

func effectOnStep(s *state.Snapshot, c *v1alpha1.Control) (e effect, why string) {
	step := s.Status.Step
	switch want := ptr.Deref(c.StepIndex, step.Index); {
	case want > step.Index:
		return pending, ""
	case want < step.Index:
		return declined, fmt.Sprintf("the step with the index %d is over; status.step.index is %d", want, step.Index)
	}
	return applied, ""
}

// ApplyControl answers a user action, once.
func ApplyControl(d *state.Draft) {
	c := UserAction(&d.Snapshot)
	e, why := effectOf(&d.Snapshot, c)
	d.Status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: d.Micro()}
	if e == declined {
		Decline(d, why)
		return
	}
	var step *int32
	if d.Status.Step != nil {
		step = new(d.Status.Step.Index)
	}
	intervene(d, c, step) // on record first, since what is applied may end the release
	switch {
	case c.Action == v1alpha1.ControlAbort:
		Reject(d, v1alpha1.ReasonAborted, "aborted "+who(c))
	case d.Decided(v1alpha1.ActionPromote):
		d.Status.Step.FailureAccepted = true
	case c.Action == v1alpha1.ControlPromoteFull:
		d.EnterStep(len(d.Steps))
		DecidePromotion(d, state.ReasonPromotedFully, "promoted fully "+who(c))
	default:
		passStep(d, c)
	}
}

// passStep ends the present step at the next look: Promote still wants evidence.
func passStep(d *state.Draft, c *v1alpha1.Control) {
	s := d.Status.Step
	s.PassedAt = new(d.Micro())
	s.AnalysisSkipped = s.AnalysisSkipped || c.Action == v1alpha1.ControlSkip
	d.Note(false, string(c.Action), "Step %s: %s %s", s.Summary, strings.ToLower(string(c.Action)), who(c))
}

// IgnoreControl puts on record that a user action came when there was nothing to act on.
func IgnoreControl(d *state.Draft) {
	if c := UserAction(&d.Snapshot); c != nil {
		d.Status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: d.Micro()}
		Decline(d, fmt.Sprintf("no release of revision %s is in progress", c.Revision))
	}
}

// Decline records that a user action is ignored, and why.
func Decline(d *state.Draft, why string) {
	c := &d.Status.Control.Control
	d.Status.Control.Ignored = kit.ShortenTo(why, maxIgnored)
	d.Note(true, v1alpha1.ReasonControlIgnored, "%s of revision %s is ignored: %s", c.Action, c.Revision, why)
}

func intervene(d *state.Draft, c *v1alpha1.Control, step *int32) {
	d.Status.Interventions = append(d.Status.Interventions, v1alpha1.Intervention{
		Action: c.Action, StepIndex: step, By: c.By, Reason: c.Reason, Time: d.Micro(),
	})
	if n := len(d.Status.Interventions); n > maxInterventions {
		d.Status.Interventions = slices.Clone(d.Status.Interventions[n-maxInterventions:])
	}
}

// Retry releases the rejected revision again if a user wants that, and reports whether
// it does. Any other action on it is ignored.
func Retry(d *state.Draft) bool {
	c := UserAction(&d.Snapshot)
	if c == nil || d.Refusal != nil {
		return false
	}
	d.Status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: d.Micro()}
	switch {
	case c.Revision != d.Revision:
		Decline(d, fmt.Sprintf("revision %s was rolled back and is the only one that can be released again", d.Revision))
	case c.Action != v1alpha1.ControlRetry:
		Decline(d, "the revision was rolled back; use Retry to release it again")
	default:
		d.Note(false, string(c.Action), "Revision %s is released again, %s", c.Revision, who(c))
		ForgetRelease(d)
		intervene(d, c, nil)
		d.Wait(v1alpha1.ReasonPreparing, "Revision %s is released again.", c.Revision)
		d.Wake(d.Now)
		return true
	}
	return false
}

// who names the user, as far as that is known.
func who(c *v1alpha1.Control) string {
	s := "by a user"
	if c.By != "" {
		s = "by " + c.By
	}
	if c.Reason != "" {
		s += " (" + c.Reason + ")"
	}
	return s
}
