// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

// A canary whose evidence suffices ahead of time gets nearly all of the traffic, and
// stable the rest until the last step would have ended: a defect that begins late is
// found only by comparison.
//
//	last step                 held back                       then
//	50 %  … evidence suffices 95 % until the step's end       100 %
const holdoutWeight = fullWeight - policy.Holdout

// onlyTheLastPromotes leaves the evidence for a promotion to the last step: what
// is known at one weight certifies no other.
func (s *settings) onlyTheLastPromotes() {
	for i := range s.steps {
		if !s.early || i < len(s.steps)-1 || !s.steps[i].canBeEarly() {
			s.steps[i].judge.MaxBadPromotion = 0
		}
	}
}

// canBeEarly reports whether a step is one whose end evidence can bring forward.
func (s step) canBeEarly() bool {
	return s.Weight > 0 && s.Weight < holdoutWeight && len(s.Matches) == 0 && !s.manual
}

// applyHoldout has the last step send what it sends after an early promotion.
func (p *pass) applyHoldout() {
	s := p.status.Step
	if s == nil || s.HoldoutUntil == nil || !p.early || int(s.Index) != len(p.steps)-1 {
		return
	}
	last := &p.steps[s.Index]
	if last.Weight != s.HoldoutFrom || !last.canBeEarly() {
		return // it was edited: the release goes on at what it says now
	}
	last.Route, last.pods = Route{Weight: holdoutWeight}, nil
	last.judge.MaxBadPromotion = 0
}

// promotesEarly gives a canary that has proved itself nearly all of the traffic, if
// nothing else is in the way.
func (p *pass) promotesEarly(i int) bool {
	if !p.verdict.MayPromote || p.status.Step.HoldoutUntil != nil || !p.gate(len(p.steps), p.Now) {
		return false
	}
	end := metav1.NewMicroTime(p.endOf(i))
	p.enterStep(i)
	s := p.status.Step
	s.HoldoutUntil, s.HoldoutFrom, s.Weight = &end, s.Weight, holdoutWeight
	p.applyHoldout()
	p.events = append(p.events, Event{Routine: true, Reason: "PromotedEarly", Message: fmt.Sprintf(
		"Revision %s has proved itself ahead of time: %s", p.revision, p.verdict.Explain())})
	p.proceed()
	return true
}

// endOf is when the hold of step i, which is in effect, is over.
func (p *pass) endOf(i int) time.Time {
	if s := p.status.Step; s.HoldoutUntil != nil {
		return s.HoldoutUntil.Time
	}
	return p.status.Step.ProgrammedAt.Add(p.steps[i].hold)
}

// judgeOf is how a step is judged, with what former releases have taught.
func (p *pass) judgeOf(i int) judge.Config {
	c := p.steps[i].judge
	if text := p.status.Dispersion; text != "" {
		var d judge.Dispersion
		if d.UnmarshalText([]byte(text)) == nil { // else it is measured again
			c.Dispersion = d
		}
	}
	return c
}

// keepDispersion notes what the release has taught about stable's requests.
func (p *pass) keepDispersion() {
	if p.status.Analysis == nil {
		return
	}
	d := p.evidenceState().Dispersion()
	if d == (judge.Dispersion{}) {
		return
	}
	if text, err := d.MarshalText(); err == nil {
		p.status.Dispersion = string(text)
	}
}
