// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

const (
	maxPending = 64
	// MaxQuestions is how many questions to gates are kept.
	MaxQuestions = 64
	// MaxHookMessage is how much of an endpoint's answer is kept, in bytes.
	MaxHookMessage = 256
)

// Notify puts a notification in the outbox for each endpoint that wants to know.
// The outbox is part of the status: a notification is on record in the same write as
// what happened, and survives a crash until the endpoint has taken it.
func Notify(d *state.Draft, kind v1alpha1.NotificationKind, message string) {
	for _, n := range d.Rollout.Spec.Notifications {
		if len(n.Events) == 0 || slices.Contains(n.Events, kind) {
			post(d, n.Name, kind, message, false)
		}
	}
}

// NotifyOutcome notifies of the end of a release, hooks included.
func NotifyOutcome(d *state.Draft, kind v1alpha1.NotificationKind, message string) {
	Notify(d, kind, message)
	for _, h := range d.Rollout.Spec.Hooks {
		if h.When == v1alpha1.HookAfterRelease {
			post(d, h.Name, kind, message, true)
		}
	}
}

// NotifyOnce notifies of what goes on for a while: the first time only.
func NotifyOnce(d *state.Draft, kind v1alpha1.NotificationKind, message string) {
	if s := d.Status.Step; s != nil && s.NotifiedAt == nil {
		at := d.Micro()
		s.NotifiedAt = &at
		Notify(d, kind, message)
	}
}

func post(d *state.Draft, name string, kind v1alpha1.NotificationKind, message string, hook bool) {
	n := v1alpha1.PendingNotification{
		Name: name, Kind: kind, Revision: d.Revision, Message: kit.Shorten(message), Time: d.Micro(), Hook: hook,
	}
	step := 0
	if s := d.Status.Step; s != nil {
		n.Step, n.Weight, step = s.Summary, s.Weight, int(s.Index)
	}
	if c := d.Status.Canary; c != nil { // d.revision is the newer one when this one is superseded
		n.Revision = c.Revision
	}
	n.ID = fmt.Sprintf("%s-%s-%s-%d", name, ReleaseID(&d.Snapshot), strings.ToLower(string(kind)), step)
	if s := d.Status.Step; s != nil && s.HoldoutUntil != nil {
		n.ID += "-early" // the same step, at another weight
	}
	if slices.ContainsFunc(d.Status.Notifications, func(x v1alpha1.PendingNotification) bool { return x.ID == n.ID }) {
		return
	}
	d.Status.Notifications = append(d.Status.Notifications, n)
	if extra := len(d.Status.Notifications) - maxPending; extra > 0 {
		d.Status.Notifications = d.Status.Notifications[extra:]
	}
}

// ReleaseID identifies one release of one revision: its start tells it from an
// earlier release of the same revision.
func ReleaseID(s *state.Snapshot) string {
	c := s.Status.Canary
	if c == nil {
		return s.Revision
	}
	if c.StartedAt == nil {
		if step := s.Status.Step; step != nil {
			return fmt.Sprintf("%s-w%d", c.Revision, step.StartedAt.Unix())
		}
		return c.Revision
	}
	return fmt.Sprintf("%s-%d", c.Revision, c.StartedAt.Unix())
}

// ClearOutbox removes what was delivered, and what no endpoint wants any more.
func ClearOutbox(d *state.Draft) {
	d.Status.Notifications = slices.DeleteFunc(d.Status.Notifications, func(n v1alpha1.PendingNotification) bool {
		return d.Answers[n.ID].Final || !wanted(&d.Snapshot, n)
	})
	if len(d.Status.Notifications) == 0 {
		d.Status.Notifications = nil
	}
}

func wanted(s *state.Snapshot, n v1alpha1.PendingNotification) bool {
	if n.Hook {
		return slices.ContainsFunc(s.Rollout.Spec.Hooks, func(h v1alpha1.Hook) bool { return h.Name == n.Name })
	}
	return slices.ContainsFunc(s.Rollout.Spec.Notifications, func(x v1alpha1.Notification) bool { return x.Name == n.Name })
}
