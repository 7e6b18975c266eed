// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
)

// relocate finds the present step again after the steps were edited: the one with
// the same weight, or else the nearest lower one. The weight never jumps up; where
// every step is higher, the release begins with the first one again, from no
// traffic at all.
func (p *pass) relocate() {
	s := p.status.Step
	if s == nil || p.decided("Promote") {
		return
	}
	here := Route{Weight: s.Weight, Matches: s.Matches}
	if i := int(s.Index); i < len(p.steps) && p.steps[i].sameRequests(here) {
		p.number(i)
		return
	}
	inEffect := s.ProgrammedAt != nil
	if !inEffect {
		here = p.lastAsked()
	}
	i := p.nearest(here)
	p.note(false, "StepsEdited", "The steps were edited: the release goes on at %s", p.stepName(i))
	switch {
	case i < 0:
		p.status.Step = nil
	case inEffect && p.steps[i].sameRequests(here):
		p.number(i)
	default:
		p.enterStep(i)
	}
}

// number gives the present step its number among the edited steps.
func (p *pass) number(i int) {
	s := p.status.Step
	s.Index, s.Of, s.Summary = int32(i), int32(len(p.steps)), p.summary(i) //nolint:gosec // at most 100 steps
}

// nearest is the first step that sends the same requests to the canary, else the
// last one that sends fewer, else -1.
func (p *pass) nearest(here Route) int {
	lower := -1
	for i, s := range p.steps {
		if s.sameRequests(here) {
			return i
		}
		if s.exposure() < here.exposure() || len(s.Matches) > 0 && s.Weight <= here.Weight {
			lower = i
		}
	}
	return lower
}

func (p *pass) stepName(i int) string {
	if i < 0 {
		return "the first one, from no traffic"
	}
	return fmt.Sprintf("step %s with %s", p.summary(i), p.steps[i].share())
}
