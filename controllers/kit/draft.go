// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Statement is the one sentence about what is released, with what kstatus wants to know.
type Statement struct {
	Ready, Stalled, Progress bool
	Reason, Message          string
}

// Event is a note for users on what is released.
type Event struct {
	// Warning or Normal.
	Warning bool
	// Routine is for the log only. It happens at every step, and there may be a
	// hundred of them.
	Routine bool
	Reason  string
	Message string
}

// Draft is what a planner writes its decision into.
type Draft struct {
	Actions []Action
	Events  []Event
	State   Statement
	// After is when to look again if nothing changes; 0 means only on a change.
	After time.Duration
}

// Do adds actions.
func (d *Draft) Do(a ...Action) { d.Actions = append(d.Actions, a...) }

// Say sets the sentence of this decision.
func (d *Draft) Say(reason, format string, args ...any) {
	d.State.Reason, d.State.Message = reason, strings.TrimSpace(fmt.Sprintf(format, args...))
}

// Wait says what is under way.
func (d *Draft) Wait(reason, format string, args ...any) {
	d.Say(reason, format, args...)
	d.State.Progress = true
}

// Stall says what a user has to do.
func (d *Draft) Stall(reason, format string, args ...any) {
	d.Say(reason, format, args...)
	d.State.Stalled = true
}

// Note adds an event.
func (d *Draft) Note(warning bool, reason, format string, args ...any) {
	d.Events = append(d.Events, Event{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// WakeIn has the planner called again after some time at the latest.
func (d *Draft) WakeIn(after time.Duration) {
	if after = max(after, time.Millisecond); d.After == 0 || after < d.After {
		d.After = after
	}
}

// Condition is a condition with the reason and the message of a statement.
func Condition(kind string, is bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: Shorten(message)}
	if is {
		c.Status = metav1.ConditionTrue
	}
	return c
}

const maxMessage = 1024

// Shorten cuts a message to what the API takes in a condition.
func Shorten(s string) string { return ShortenTo(s, maxMessage) }

// ShortenTo cuts a text to some number of characters.
func ShortenTo(s string, limit int) string {
	if len(s) <= limit { // it has no more characters than bytes
		return s
	}
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-1]) + "…"
}
