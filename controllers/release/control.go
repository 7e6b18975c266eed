// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// maxInterventions is how many decisions of persons are kept for one release.
const maxInterventions = 20

// verdict of carryOut.
type obedience int

const (
	pending  obedience = iota // it can't be carried out yet
	carried                   // it was
	declined                  // it never will be
)

// order is the decision of a person that was not seen yet, nil if there is none.
func (p *pass) order() *v1alpha1.Control {
	c, seen := p.Rollout.Spec.Control, p.status.Control
	if c == nil || seen != nil && sameOrder(seen.Control, *c) {
		return nil
	}
	return c
}

// sameOrder compares what was decided; who did makes no new decision. Another
// reason does: that is how the same revision is retried twice.
func sameOrder(a, b v1alpha1.Control) bool {
	return a.Revision == b.Revision && a.Action == b.Action && stepOf(a) == stepOf(b) && a.Reason == b.Reason
}

func stepOf(c v1alpha1.Control) int32 {
	if c.Step == nil {
		return 0
	}
	return *c.Step
}

// obey carries out what a person decided, once.
func (p *pass) obey() {
	c := p.order()
	if c == nil {
		return
	}
	step := int32(0)
	if p.status.Step != nil {
		step = p.status.Step.Index + 1
	}
	// The record comes first, since what is carried out may end the release.
	before := p.status.Control
	p.status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: p.micro()}
	p.intervene(c, step)
	done, why := p.carryOut(c)
	if done == carried {
		return
	}
	p.status.Interventions = p.status.Interventions[:len(p.status.Interventions)-1]
	if len(p.status.Interventions) == 0 {
		p.status.Interventions = nil
	}
	if done == pending {
		p.status.Control = before
		return
	}
	p.decline(why)
}

// ignoreOrder puts on record that a decision came when there was nothing to decide.
func (p *pass) ignoreOrder() {
	if c := p.order(); c != nil {
		p.status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: p.micro()}
		p.decline(fmt.Sprintf("no release of revision %s is in progress", c.Revision))
	}
}

func (p *pass) decline(why string) {
	c := &p.status.Control.Control
	p.status.Control.Ignored = shortenTo(why, maxIgnored)
	p.note(true, v1alpha1.ReasonControlIgnored, "%s of revision %s is ignored: %s", c.Action, c.Revision, why)
}

func (p *pass) intervene(c *v1alpha1.Control, step int32) {
	p.status.Interventions = append(p.status.Interventions, v1alpha1.Intervention{
		Action: c.Action, Step: step, By: c.By, Reason: c.Reason, Time: p.micro(),
	})
	if n := len(p.status.Interventions); n > maxInterventions {
		p.status.Interventions = p.status.Interventions[n-maxInterventions:]
	}
}

// carryOut does what a person decided about the release in progress.
func (p *pass) carryOut(c *v1alpha1.Control) (done obedience, why string) {
	switch {
	case c.Revision != p.revision:
		return declined, fmt.Sprintf("revision %s is being released; read status.canary.revision", p.revision)
	case c.Action == v1alpha1.ControlRetry:
		return declined, "the revision was not rolled back; Retry is for one that was"
	case c.Action == v1alpha1.ControlAbort:
		p.reject(v1alpha1.ReasonAborted, "aborted "+who(c))
		return carried, ""
	case p.decided(v1alpha1.ActionPromote):
		return p.insist(c)
	case !p.begun() || p.status.Step == nil:
		return pending, ""
	case c.Action == v1alpha1.ControlPromoteFull:
		p.enterStep(len(p.steps))
		p.decidePromotion(reasonPromotedFully, "promoted fully "+who(c))
		return carried, ""
	}
	return p.endStep(c)
}

// insist goes on with a promotion that the analysis holds.
func (p *pass) insist(c *v1alpha1.Control) (done obedience, why string) {
	s, a := p.status.Step, p.status.Analysis
	held := s != nil && a != nil && (a.Verdict == string(judge.Fail) || a.Reason == string(judge.ReasonSuspected))
	if !held || p.accepted() || c.Action == v1alpha1.ControlPromote {
		return declined, "the revision is being promoted already"
	}
	s.FailureAccepted = true
	return carried, ""
}

// endStep ends the present step at the next look: Promote still wants evidence.
func (p *pass) endStep(c *v1alpha1.Control) (done obedience, why string) {
	s := p.status.Step
	switch want := stepOf(*c); {
	case want > s.Index+1:
		return pending, ""
	case want != 0 && want < s.Index+1:
		return declined, fmt.Sprintf("step %d is over; the release is at step %s", want, s.Summary)
	}
	at := p.micro()
	s.PassedAt = &at
	s.AnalysisSkipped = s.AnalysisSkipped || c.Action == v1alpha1.ControlSkip
	p.note(false, string(c.Action), "Step %s: %s %s", s.Summary, strings.ToLower(string(c.Action)), who(c))
	return carried, ""
}

// retried releases the rejected revision again if a person wants that, and reports
// whether it does. Anything else that is decided about it is ignored.
func (p *pass) retried() bool {
	c := p.order()
	if c == nil {
		return false
	}
	p.status.Control = &v1alpha1.ControlStatus{Control: *c, SeenAt: p.micro()}
	switch {
	case c.Revision != p.revision:
		p.decline(fmt.Sprintf("revision %s was rolled back and is the only one that can be released again", p.revision))
	case c.Action != v1alpha1.ControlRetry:
		p.decline("the revision was rolled back; use Retry to release it again")
	default:
		p.note(false, string(c.Action), "Revision %s is released again, %s", c.Revision, who(c))
		p.forgetRelease()
		p.intervene(c, 0)
		p.say(v1alpha1.ReasonPreparing, "Revision %s is released again.", c.Revision)
		p.state.progress = true
		p.wake(p.Now)
		return true
	}
	return false
}

// who names the person, as far as that is known.
func who(c *v1alpha1.Control) string {
	s := "by a person"
	if c.By != "" {
		s = "by " + c.By
	}
	if c.Reason != "" {
		s += " (" + c.Reason + ")"
	}
	return s
}
