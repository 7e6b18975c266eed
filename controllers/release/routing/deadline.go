// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/state"
)

// NoteLoss begins the time that a step has to be live again. Restarts of single
// pods begin it anew only when all of them were back.
func NoteLoss(d *state.Draft) {
	if s := d.Status.Step; s.ProgrammedAt != nil && s.InterruptedAt == nil {
		s.InterruptedAt = new(d.Micro())
	}
}

// OrTooLate rolls back a step that takes too long to get ready, or to be ready again, and
// reports whether it does.
func OrTooLate(d *state.Draft) (rejected bool) {
	s := d.Status.Step
	if s == nil || !d.Begun() {
		return false
	}
	since, what := s.PreparedAt, "was not live"
	if s.ProgrammedAt != nil {
		since, what = s.InterruptedAt, "was not live again"
	}
	if since == nil {
		return false
	}
	if until, recovering := d.Recovering(); recovering {
		d.Wake(until)
		return false
	}
	if d.CanaryExcused {
		d.Wake(d.Now.Add(state.CatchUpTime))
	}
	over, look := d.Over(since.Add(d.Deadline))
	if !over {
		d.Wake(look)
		return false
	}
	record.Reject(d, v1alpha1.ReasonProgressDeadlineExceeded, fmt.Sprintf("step %s %s within %s: %s", s.Summary, what, state.Brief(d.Deadline), detail(d)))
	return true
}

// detail is the present sentence as a part of another one, which names the step.
func detail(d *state.Draft) string {
	text := strings.TrimSuffix(d.State.Message, ".")
	if s := d.Status.Step; s != nil {
		text = strings.TrimPrefix(text, "Step "+s.Summary+": ")
	}
	return text
}
