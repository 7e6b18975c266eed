// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"slices"
	"time"

	analysis "github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/state"
)

// CallHooks calls every hook of that time, and reports whether all of them
// approved. One that refuses, or does not answer in time, ends the release.
func CallHooks(d *state.Draft, on v1alpha1.HookTime, i int) (approved, ended bool) {
	approved = true
	for _, h := range d.Rollout.Spec.Hooks {
		if h.When != on {
			continue
		}
		switch call(d, h, i) {
		case v1alpha1.HookApproved:
		case v1alpha1.HookCalled:
			approved = false
		default:
			return false, true
		}
	}
	return approved, false
}

// call calls one hook, and returns its answer.
func call(d *state.Draft, h v1alpha1.Hook, i int) v1alpha1.HookAnswer {
	s := question(d, h, i)
	if s.Answer == v1alpha1.HookApproved {
		return s.Answer
	}
	answer := d.Answers[s.ID]
	s.Message = kit.ShortenTo(answer.Message, record.MaxHookMessage)
	overdue, look := overdue(&d.Snapshot, h, s)
	switch {
	case answer.Final && answer.Taken:
		s.Answer, s.Message = v1alpha1.HookApproved, ""
		return s.Answer
	case answer.Final:
		s.Answer = v1alpha1.HookRefused
		record.Reject(d, v1alpha1.ReasonHookRefused, fmt.Sprintf("the hook %q refused", h.Name))
		return v1alpha1.HookRefused
	case overdue:
		s.Answer = v1alpha1.HookTimedOut
		record.Reject(d, v1alpha1.ReasonHookTimedOut, fmt.Sprintf("the hook %q did not approve within %s", h.Name, h.Timeout))
		return v1alpha1.HookTimedOut
	}
	d.Wake(look)
	q := state.Question{ID: s.ID, Hook: h, Revision: d.Revision}
	if i < len(d.Steps) && h.When != v1alpha1.HookBeforeRelease && h.When != v1alpha1.HookBeforePromotion {
		q.Index, q.Of, q.Weight = int32(i), int32(len(d.Steps)), d.StepAt(i).Weight //nolint:gosec // at most 100 steps
	}
	d.Questions = append(d.Questions, q)
	what := fmt.Sprintf("waiting for the hook %q to approve", h.Name)
	if s.Message != "" {
		what += " (" + s.Message + ")"
	}
	WaitFor(d, &Obstacle{reason: v1alpha1.ReasonWaitingForHook, what: what})
	return v1alpha1.HookCalled
}

// question is the record of a question, made when it is put first.
func question(d *state.Draft, h v1alpha1.Hook, i int) *v1alpha1.HookStatus {
	id := fmt.Sprintf("%s-%s-%d", h.Name, record.ReleaseID(&d.Snapshot), i)
	at := slices.IndexFunc(d.Status.Hooks, func(s v1alpha1.HookStatus) bool { return s.ID == id })
	if at < 0 {
		at = len(d.Status.Hooks)
		d.Status.Hooks = append(d.Status.Hooks, v1alpha1.HookStatus{ID: id, Answer: v1alpha1.HookCalled, CalledAt: d.Micro()})
	}
	if extra := len(d.Status.Hooks) - record.MaxQuestions; extra > 0 {
		d.Status.Hooks, at = d.Status.Hooks[extra:], at-extra
	}
	return &d.Status.Hooks[at]
}

// DropQuestions forgets calls that are not made any more, since something else holds the
// release up: a hook has its whole time when it is called again.
func DropQuestions(d *state.Draft) {
	d.Status.Hooks = slices.DeleteFunc(d.Status.Hooks, func(s v1alpha1.HookStatus) bool {
		return s.Answer == v1alpha1.HookCalled && !slices.ContainsFunc(d.Questions, func(q state.Question) bool { return q.ID == s.ID })
	})
	if len(d.Status.Hooks) == 0 {
		d.Status.Hooks = nil
	}
}

// overdue reports whether a hook has had its time, and when to look again. A hook that this
// process has not called yet has not: the operator may have been down for as long.
func overdue(s *state.Snapshot, h v1alpha1.Hook, called *v1alpha1.HookStatus) (is bool, look time.Time) {
	var timeout time.Duration
	if err := analysis.Duration("", h.Timeout, &timeout); err != nil || timeout == 0 {
		return false, time.Time{}
	}
	over, look := s.Over(called.CalledAt.Add(timeout))
	return over && s.Answers[called.ID].Tried, look
}
