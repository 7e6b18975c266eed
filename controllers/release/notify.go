// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	maxPending     = 64
	maxQuestions   = 64
	maxHookMessage = 256
)

// tell puts a notification in the outbox for each endpoint that wants to know.
// The outbox is part of the status: what is told is on record in the same write as
// what happened, and survives a crash until the endpoint has taken it.
func (p *pass) tell(kind v1alpha1.NotificationKind, message string) {
	for _, n := range p.Rollout.Spec.Notifications {
		if len(n.Events) == 0 || slices.Contains(n.Events, kind) {
			p.post(n.Name, kind, message, false)
		}
	}
}

// tellOutcome tells how a release ended, hooks included.
func (p *pass) tellOutcome(kind v1alpha1.NotificationKind, message string) {
	p.tell(kind, message)
	for _, h := range p.Rollout.Spec.Hooks {
		if h.When == v1alpha1.HookAfterRelease {
			p.post(h.Name, kind, message, true)
		}
	}
}

// tellOnce tells what goes on for a while: the first time only.
func (p *pass) tellOnce(kind v1alpha1.NotificationKind, message string) {
	if s := p.status.Step; s != nil && s.NotifiedAt == nil {
		at := p.micro()
		s.NotifiedAt = &at
		p.tell(kind, message)
	}
}

func (p *pass) post(name string, kind v1alpha1.NotificationKind, message string, hook bool) {
	n := v1alpha1.PendingNotification{
		Name: name, Kind: kind, Revision: p.revision, Message: shorten(message), Time: p.micro(), Hook: hook,
	}
	step := 0
	if s := p.status.Step; s != nil {
		n.Step, n.Weight, step = s.Summary, s.Weight, int(s.Index)
	}
	if c := p.status.Canary; c != nil { // p.revision is the newer one when this gives way
		n.Revision = c.Revision
	}
	n.ID = fmt.Sprintf("%s-%s-%s-%d", name, p.releaseID(), strings.ToLower(string(kind)), step)
	if s := p.status.Step; s != nil && s.HoldoutUntil != nil {
		n.ID += "-early" // the same step, at another weight
	}
	if slices.ContainsFunc(p.status.Notifications, func(x v1alpha1.PendingNotification) bool { return x.ID == n.ID }) {
		return
	}
	p.status.Notifications = append(p.status.Notifications, n)
	if extra := len(p.status.Notifications) - maxPending; extra > 0 {
		p.status.Notifications = p.status.Notifications[extra:]
	}
}

// releaseID identifies one release of one revision: its start tells it from an
// earlier release of the same revision.
func (p *pass) releaseID() string {
	c := p.status.Canary
	if c == nil {
		return p.revision
	}
	if c.StartedAt == nil {
		if s := p.status.Step; s != nil {
			return fmt.Sprintf("%s-w%d", c.Revision, s.StartedAt.Unix())
		}
		return c.Revision
	}
	return fmt.Sprintf("%s-%d", c.Revision, c.StartedAt.Unix())
}

// clearOutbox takes out what was delivered, and what nobody wants any more.
func (p *pass) clearOutbox() {
	p.status.Notifications = slices.DeleteFunc(p.status.Notifications, func(n v1alpha1.PendingNotification) bool {
		return p.Answers[n.ID].Final || !p.wanted(n)
	})
	if len(p.status.Notifications) == 0 {
		p.status.Notifications = nil
	}
}

func (p *pass) wanted(n v1alpha1.PendingNotification) bool {
	if n.Hook {
		return slices.ContainsFunc(p.Rollout.Spec.Hooks, func(h v1alpha1.Hook) bool { return h.Name == n.Name })
	}
	return slices.ContainsFunc(p.Rollout.Spec.Notifications, func(x v1alpha1.Notification) bool { return x.Name == n.Name })
}
