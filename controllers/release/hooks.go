// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"time"

	analysis "github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// approved puts the question to every hook of that time, and reports whether all
// of them approved. One that refuses, or does not answer in time, ends the release.
func (p *pass) approved(on v1alpha1.HookTime, i int) bool {
	ok := true
	for _, h := range p.Rollout.Spec.Hooks {
		if h.When == on && !p.ask(h, i) {
			ok = false
		}
		if p.decided(v1alpha1.ActionRollBack) {
			return false
		}
	}
	return ok
}

// ask reports whether one hook approved.
func (p *pass) ask(h v1alpha1.Hook, i int) bool {
	s := p.question(h, i)
	if s.Answer == v1alpha1.HookApproved {
		return true
	}
	answer := p.Answers[s.ID]
	s.Message = shortenTo(answer.Message, maxHookMessage)
	switch {
	case answer.Final && answer.Taken:
		s.Answer, s.Message = v1alpha1.HookApproved, ""
		return true
	case answer.Final:
		s.Answer = v1alpha1.HookRefused
		p.reject(v1alpha1.ReasonHookRefused, fmt.Sprintf("the hook %q refused", h.Name))
		return false
	case p.overdue(h, s):
		s.Answer = v1alpha1.HookTimedOut
		p.reject(v1alpha1.ReasonHookTimedOut, fmt.Sprintf("the hook %q did not approve within %s", h.Name, h.Timeout))
		return false
	}
	q := Question{ID: s.ID, Hook: h, Revision: p.revision}
	if i < len(p.steps) && h.When != v1alpha1.HookBeforeRelease && h.When != v1alpha1.HookBeforePromotion {
		q.Index, q.Of, q.Weight = int32(i), int32(len(p.steps)), p.steps[i].Weight //nolint:gosec // at most 100 steps
	}
	p.questions = append(p.questions, q)
	what := fmt.Sprintf("waiting for the hook %q to approve", h.Name)
	if s.Message != "" {
		what += " (" + s.Message + ")"
	}
	p.wait(v1alpha1.ReasonWaitingForHook, what)
	return false
}

// question is the record of a question, made when it is put first.
func (p *pass) question(h v1alpha1.Hook, i int) *v1alpha1.HookStatus {
	id := fmt.Sprintf("%s-%s-%d", h.Name, p.releaseID(), i)
	at := slices.IndexFunc(p.status.Hooks, func(s v1alpha1.HookStatus) bool { return s.ID == id })
	if at < 0 {
		at = len(p.status.Hooks)
		p.status.Hooks = append(p.status.Hooks, v1alpha1.HookStatus{ID: id, Answer: v1alpha1.HookAsked, AskedAt: p.micro()})
	}
	if extra := len(p.status.Hooks) - maxQuestions; extra > 0 {
		p.status.Hooks, at = p.status.Hooks[extra:], at-extra
	}
	return &p.status.Hooks[at]
}

// dropQuestions forgets what is not asked any more, since something else came in the
// way: a hook has its whole time when it is asked again.
func (p *pass) dropQuestions() {
	p.status.Hooks = slices.DeleteFunc(p.status.Hooks, func(s v1alpha1.HookStatus) bool {
		return s.Answer == v1alpha1.HookAsked && !slices.ContainsFunc(p.questions, func(q Question) bool { return q.ID == s.ID })
	})
	if len(p.status.Hooks) == 0 {
		p.status.Hooks = nil
	}
}

// overdue reports whether a hook has had its time. One that this process has not
// asked yet has not: the operator may have been down for as long.
func (p *pass) overdue(h v1alpha1.Hook, s *v1alpha1.HookStatus) bool {
	var timeout time.Duration
	if err := analysis.Duration("", h.Timeout, &timeout); err != nil || timeout == 0 {
		return false
	}
	return p.passed(s.AskedAt.Add(timeout)) && p.Answers[s.ID].Tried
}
