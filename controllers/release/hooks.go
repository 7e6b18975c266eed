// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"time"

	analysis "github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// askHooks puts the question to every hook of that time, and reports whether all of them
// approved. One that refuses, or does not answer in time, ends the release.
func askHooks(d *draft, on v1alpha1.HookTime, i int) (approved, ended bool) {
	approved = true
	for _, h := range d.Rollout.Spec.Hooks {
		if h.When != on {
			continue
		}
		switch ask(d, h, i) {
		case v1alpha1.HookApproved:
		case v1alpha1.HookCalled:
			approved = false
		default:
			return false, true
		}
	}
	return approved, false
}

// ask puts the question to one hook, and returns its answer.
func ask(d *draft, h v1alpha1.Hook, i int) v1alpha1.HookAnswer {
	s := question(d, h, i)
	if s.Answer == v1alpha1.HookApproved {
		return s.Answer
	}
	answer := d.Answers[s.ID]
	s.Message = kit.ShortenTo(answer.Message, maxHookMessage)
	overdue, look := overdue(&d.snapshot, h, s)
	switch {
	case answer.Final && answer.Taken:
		s.Answer, s.Message = v1alpha1.HookApproved, ""
		return s.Answer
	case answer.Final:
		s.Answer = v1alpha1.HookRefused
		reject(d, v1alpha1.ReasonHookRefused, fmt.Sprintf("the hook %q refused", h.Name))
		return v1alpha1.HookRefused
	case overdue:
		s.Answer = v1alpha1.HookTimedOut
		reject(d, v1alpha1.ReasonHookTimedOut, fmt.Sprintf("the hook %q did not approve within %s", h.Name, h.Timeout))
		return v1alpha1.HookTimedOut
	}
	d.wake(look)
	q := Question{ID: s.ID, Hook: h, Revision: d.revision}
	if i < len(d.steps) && h.When != v1alpha1.HookBeforeRelease && h.When != v1alpha1.HookBeforePromotion {
		q.Index, q.Of, q.Weight = int32(i), int32(len(d.steps)), d.stepAt(i).Weight //nolint:gosec // at most 100 steps
	}
	d.questions = append(d.questions, q)
	what := fmt.Sprintf("waiting for the hook %q to approve", h.Name)
	if s.Message != "" {
		what += " (" + s.Message + ")"
	}
	d.wait(&obstacle{reason: v1alpha1.ReasonWaitingForHook, what: what})
	return v1alpha1.HookCalled
}

// question is the record of a question, made when it is put first.
func question(d *draft, h v1alpha1.Hook, i int) *v1alpha1.HookStatus {
	id := fmt.Sprintf("%s-%s-%d", h.Name, releaseID(&d.snapshot), i)
	at := slices.IndexFunc(d.status.Hooks, func(s v1alpha1.HookStatus) bool { return s.ID == id })
	if at < 0 {
		at = len(d.status.Hooks)
		d.status.Hooks = append(d.status.Hooks, v1alpha1.HookStatus{ID: id, Answer: v1alpha1.HookCalled, CalledAt: d.micro()})
	}
	if extra := len(d.status.Hooks) - maxQuestions; extra > 0 {
		d.status.Hooks, at = d.status.Hooks[extra:], at-extra
	}
	return &d.status.Hooks[at]
}

// dropQuestions forgets what is not asked any more, since something else came in the
// way: a hook has its whole time when it is asked again.
func dropQuestions(d *draft) {
	d.status.Hooks = slices.DeleteFunc(d.status.Hooks, func(s v1alpha1.HookStatus) bool {
		return s.Answer == v1alpha1.HookCalled && !slices.ContainsFunc(d.questions, func(q Question) bool { return q.ID == s.ID })
	})
	if len(d.status.Hooks) == 0 {
		d.status.Hooks = nil
	}
}

// overdue reports whether a hook has had its time, and when to look again. One that this
// process has not asked yet has not: the operator may have been down for as long.
func overdue(s *snapshot, h v1alpha1.Hook, asked *v1alpha1.HookStatus) (is bool, look time.Time) {
	var timeout time.Duration
	if err := analysis.Duration("", h.Timeout, &timeout); err != nil || timeout == 0 {
		return false, time.Time{}
	}
	over, look := s.over(asked.CalledAt.Add(timeout))
	return over && s.Answers[asked.ID].Tried, look
}
