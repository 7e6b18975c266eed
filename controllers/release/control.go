// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
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

// control is the user action that was not seen yet, nil if there is none.
func (s *snapshot) control() *v1alpha1.Control {
	c, seen := s.Rollout.Spec.Control, s.status.Control
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

// applicable reports whether there is a user action that can be answered now. While the
// Rollout can't be served, only an abort is.
func applicable(s *snapshot) bool {
	c := s.control()
	if c == nil || s.refusal != nil && c.Action != v1alpha1.ControlAbort {
		return false
	}
	e, _ := effectOf(s, c)
	return e != pending
}

// effectOf says what becomes of a user action on the release in progress.
func effectOf(s *snapshot, c *v1alpha1.Control) (e effect, why string) {
	switch {
	case c.Revision != s.revision:
		return declined, fmt.Sprintf("revision %s is being released; read status.canary.revision", s.revision)
	case c.Action == v1alpha1.ControlRetry:
		return declined, "the revision was not rolled back; Retry is for one that was"
	case c.Action == v1alpha1.ControlAbort:
		return applied, ""
	case s.decided(v1alpha1.ActionPromote):
		return effectOnPromotion(s, c)
	case !s.begun() || s.status.Step == nil:
		return pending, ""
	case c.Action == v1alpha1.ControlPromoteFull:
		return applied, ""
	}
	return effectOnStep(s, c)
}

// effectOnPromotion: only a promotion that the analysis holds can be insisted on.
func effectOnPromotion(s *snapshot, c *v1alpha1.Control) (e effect, why string) {
	a := s.status.Analysis
	held := s.status.Step != nil && a != nil && (a.Verdict == string(judge.Fail) || a.Reason == string(judge.ReasonSuspected))
	if !held || s.accepted() || c.Action == v1alpha1.ControlPromote {
		return declined, "the revision is being promoted already"
	}
	return applied, ""
}

func effectOnStep(s *snapshot, c *v1alpha1.Control) (e effect, why string) {
	step := s.status.Step
	switch want := ptr.Deref(c.StepIndex, step.Index); {
	case want > step.Index:
		return pending, ""
	case want < step.Index:
		return declined, fmt.Sprintf("the step with the index %d is over; status.step.index is %d", want, step.Index)
	}
	return applied, ""
}

// applyControl answers a user action, once.
func applyControl(d *draft) {
	c := d.control()
	e, why := effectOf(&d.snapshot, c)
	d.status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: d.micro()}
	if e == declined {
		decline(d, why)
		return
	}
	var step *int32
	if d.status.Step != nil {
		step = new(d.status.Step.Index)
	}
	intervene(d, c, step) // on record first, since what is applied may end the release
	switch {
	case c.Action == v1alpha1.ControlAbort:
		reject(d, v1alpha1.ReasonAborted, "aborted "+who(c))
	case d.decided(v1alpha1.ActionPromote):
		d.status.Step.FailureAccepted = true
	case c.Action == v1alpha1.ControlPromoteFull:
		d.enterStep(len(d.steps))
		decidePromotion(d, reasonPromotedFully, "promoted fully "+who(c))
	default:
		passStep(d, c)
	}
}

// passStep ends the present step at the next look: Promote still wants evidence.
func passStep(d *draft, c *v1alpha1.Control) {
	s := d.status.Step
	s.PassedAt = new(d.micro())
	s.AnalysisSkipped = s.AnalysisSkipped || c.Action == v1alpha1.ControlSkip
	d.Note(false, string(c.Action), "Step %s: %s %s", s.Summary, strings.ToLower(string(c.Action)), who(c))
}

// ignoreControl puts on record that a user action came when there was nothing to act on.
func ignoreControl(d *draft) {
	if c := d.control(); c != nil {
		d.status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: d.micro()}
		decline(d, fmt.Sprintf("no release of revision %s is in progress", c.Revision))
	}
}

func decline(d *draft, why string) {
	c := &d.status.Control.Control
	d.status.Control.Ignored = kit.ShortenTo(why, maxIgnored)
	d.Note(true, v1alpha1.ReasonControlIgnored, "%s of revision %s is ignored: %s", c.Action, c.Revision, why)
}

func intervene(d *draft, c *v1alpha1.Control, step *int32) {
	d.status.Interventions = append(d.status.Interventions, v1alpha1.Intervention{
		Action: c.Action, StepIndex: step, By: c.By, Reason: c.Reason, Time: d.micro(),
	})
	if n := len(d.status.Interventions); n > maxInterventions {
		d.status.Interventions = slices.Clone(d.status.Interventions[n-maxInterventions:])
	}
}

// retry releases the rejected revision again if a user wants that, and reports whether
// it does. Any other action on it is ignored.
func retry(d *draft) bool {
	c := d.control()
	if c == nil || d.refusal != nil {
		return false
	}
	d.status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: d.micro()}
	switch {
	case c.Revision != d.revision:
		decline(d, fmt.Sprintf("revision %s was rolled back and is the only one that can be released again", d.revision))
	case c.Action != v1alpha1.ControlRetry:
		decline(d, "the revision was rolled back; use Retry to release it again")
	default:
		d.Note(false, string(c.Action), "Revision %s is released again, %s", c.Revision, who(c))
		forgetRelease(d)
		intervene(d, c, nil)
		d.Wait(v1alpha1.ReasonPreparing, "Revision %s is released again.", c.Revision)
		d.wake(d.Now)
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
