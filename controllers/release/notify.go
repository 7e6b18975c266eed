// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

const (
	maxPending     = 64
	maxQuestions   = 64
	maxHookMessage = 256
)

// notify puts a notification in the outbox for each endpoint that wants to know.
// The outbox is part of the status: what is told is on record in the same write as
// what happened, and survives a crash until the endpoint has taken it.
func notify(d *draft, kind v1alpha1.NotificationKind, message string) {
	for _, n := range d.Rollout.Spec.Notifications {
		if len(n.Events) == 0 || slices.Contains(n.Events, kind) {
			post(d, n.Name, kind, message, false)
		}
	}
}

// notifyOutcome tells how a release ended, hooks included.
func notifyOutcome(d *draft, kind v1alpha1.NotificationKind, message string) {
	notify(d, kind, message)
	for _, h := range d.Rollout.Spec.Hooks {
		if h.When == v1alpha1.HookAfterRelease {
			post(d, h.Name, kind, message, true)
		}
	}
}

// notifyOnce tells what goes on for a while: the first time only.
func notifyOnce(d *draft, kind v1alpha1.NotificationKind, message string) {
	if s := d.status.Step; s != nil && s.NotifiedAt == nil {
		at := d.micro()
		s.NotifiedAt = &at
		notify(d, kind, message)
	}
}

func post(d *draft, name string, kind v1alpha1.NotificationKind, message string, hook bool) {
	n := v1alpha1.PendingNotification{
		Name: name, Kind: kind, Revision: d.revision, Message: kit.Shorten(message), Time: d.micro(), Hook: hook,
	}
	step := 0
	if s := d.status.Step; s != nil {
		n.Step, n.Weight, step = s.Summary, s.Weight, int(s.Index)
	}
	if c := d.status.Canary; c != nil { // d.revision is the newer one when this gives way
		n.Revision = c.Revision
	}
	n.ID = fmt.Sprintf("%s-%s-%s-%d", name, releaseID(&d.snapshot), strings.ToLower(string(kind)), step)
	if s := d.status.Step; s != nil && s.HoldoutUntil != nil {
		n.ID += "-early" // the same step, at another weight
	}
	if slices.ContainsFunc(d.status.Notifications, func(x v1alpha1.PendingNotification) bool { return x.ID == n.ID }) {
		return
	}
	d.status.Notifications = append(d.status.Notifications, n)
	if extra := len(d.status.Notifications) - maxPending; extra > 0 {
		d.status.Notifications = d.status.Notifications[extra:]
	}
}

// releaseID identifies one release of one revision: its start tells it from an
// earlier release of the same revision.
func releaseID(s *snapshot) string {
	c := s.status.Canary
	if c == nil {
		return s.revision
	}
	if c.StartedAt == nil {
		if step := s.status.Step; step != nil {
			return fmt.Sprintf("%s-w%d", c.Revision, step.StartedAt.Unix())
		}
		return c.Revision
	}
	return fmt.Sprintf("%s-%d", c.Revision, c.StartedAt.Unix())
}

// clearOutbox takes out what was delivered, and what nobody wants any more.
func clearOutbox(d *draft) {
	d.status.Notifications = slices.DeleteFunc(d.status.Notifications, func(n v1alpha1.PendingNotification) bool {
		return d.Answers[n.ID].Final || !wanted(&d.snapshot, n)
	})
	if len(d.status.Notifications) == 0 {
		d.status.Notifications = nil
	}
}

func wanted(s *snapshot, n v1alpha1.PendingNotification) bool {
	if n.Hook {
		return slices.ContainsFunc(s.Rollout.Spec.Hooks, func(h v1alpha1.Hook) bool { return h.Name == n.Name })
	}
	return slices.ContainsFunc(s.Rollout.Spec.Notifications, func(x v1alpha1.Notification) bool { return x.Name == n.Name })
}
