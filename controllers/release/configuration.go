// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// settleTime is how long a change of a content or of the template waits for one of the
// other: who changes both in one go wants one release.
const settleTime = 5 * time.Second

// contentsChanging reports whether a content changed only just now.
func contentsChanging(s *state.Snapshot) bool {
	c := s.Configuration
	return !c.ChangedAt.IsZero() && s.Now.Before(c.ChangedAt.Add(settleTime))
}

// settlesAt is until when the other change may still come; zero when none is to.
func settlesAt(s *state.Snapshot) time.Time {
	if !s.Configuration.Wants {
		return time.Time{}
	}
	return s.Status.Step.StartedAt.Add(settleTime)
}

// outdated reports whether the template means other contents than it says, and may
// be changed: a Deployment that is not held yet would roll out unseen what is written
// now. The first version is rolled out without steps anyway.
func outdated(s *state.Snapshot) bool {
	w := s.Workload
	if w.Presence != kit.Present || w.Deleting || s.Configuration.Template == s.Configuration.Wanted {
		return false
	}
	held := w.ManagedBy == s.Rollout.Name && (w.Paused || s.GuardInForce)
	return held || s.Status.Stable == nil && !w.Settled
}

// configure has the template say which contents it means, which makes another
// content another version.
func configure(d *state.Draft) {
	c := d.Configuration
	noteContents(d)
	d.Status.Configuration = c.Recorded
	for _, ref := range c.Missing {
		d.Do(state.KeepContent{Kind: ref.Kind, Name: ref.Name})
	}
	switch {
	case !d.Begun() && contentsChanging(&d.Snapshot):
		d.Wake(c.ChangedAt.Add(settleTime))
	case outdated(&d.Snapshot):
		d.Do(state.SetConfiguration{Value: c.Wanted})
	case d.Begun():
	default:
		for _, unused := range c.Unused {
			d.Do(state.DropContent{Copied: unused})
		}
	}
}

// noteContents notifies users, once, of contents that have become part of a version.
func noteContents(d *state.Draft) {
	for _, now := range d.Configuration.Recorded {
		if !slices.Contains(d.Status.Configuration, now) {
			d.Note(false, v1alpha1.ReasonConfigurationChanged, "The content of the %s %q is kept as %q and is part of the next version", now.Kind, now.Name, now.Copy)
		}
	}
}
