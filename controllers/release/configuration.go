// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Configuration is what the workload's template says of its ConfigMaps and
// Secrets, and what it has to say.
type Configuration struct {
	// Asked is whether contents are part of a version.
	Asked bool
	// ChangedAt is when one of them was last seen to change; zero when that was never.
	ChangedAt time.Time
	// Problem says why spec.configuration can't be honoured; "" when it can.
	Problem string
	// Template is the annotation of the workload's template, and Wanted what it has
	// to be; "" for none.
	Template, Wanted string
	// Recorded are the contents that were last made part of a version.
	Recorded []v1alpha1.ConfigurationStatus
	// Missing are the objects whose content has to be copied first.
	Missing []v1alpha1.ConfigurationReference
	// Unused are copies that no version reads.
	Unused []Copied
}

// Copied is a copy of a ConfigMap or Secret.
type Copied struct {
	Kind v1alpha1.ConfigurationKind
	kit.Object
}

// settleTime is how long a change of a content or of the template waits for one of the
// other: who changes both in one go wants one release.
const settleTime = 5 * time.Second

// contentsChanging reports whether a content changed only just now.
func contentsChanging(s *snapshot) bool {
	c := s.Configuration
	return !c.ChangedAt.IsZero() && s.Now.Before(c.ChangedAt.Add(settleTime))
}

// settlesAt is until when the other change may still come; zero when none is to.
func settlesAt(s *snapshot) time.Time {
	if !s.Configuration.Asked {
		return time.Time{}
	}
	return s.status.Step.StartedAt.Add(settleTime)
}

// outdated reports whether the template means other contents than it says, and may
// be changed: a Deployment that is not held yet would roll out unseen what is written
// now. The first version is rolled out without steps anyway.
func outdated(s *snapshot) bool {
	w := s.Workload
	if w.Presence != kit.Present || w.Deleting || s.Configuration.Template == s.Configuration.Wanted {
		return false
	}
	held := w.ManagedBy == s.Rollout.Name && (w.Paused || s.GuardInForce)
	return held || s.status.Stable == nil && !w.Settled
}

// configure has the template say which contents it means, which makes another
// content another version.
func configure(d *draft) {
	c := d.Configuration
	noteContents(d)
	d.status.Configuration = c.Recorded
	for _, ref := range c.Missing {
		d.Do(KeepContent{Kind: ref.Kind, Name: ref.Name})
	}
	switch {
	case !d.begun() && contentsChanging(&d.snapshot):
		d.wake(c.ChangedAt.Add(settleTime))
	case outdated(&d.snapshot):
		d.Do(SetConfiguration{Value: c.Wanted})
	case d.begun():
	default:
		for _, unused := range c.Unused {
			d.Do(DropContent{Copied: unused})
		}
	}
}

// noteContents tells people, once, of contents that have become part of a version.
func noteContents(d *draft) {
	for _, now := range d.Configuration.Recorded {
		if !slices.Contains(d.status.Configuration, now) {
			d.Note(false, v1alpha1.ReasonConfigurationChanged, "The content of the %s %q is kept as %q and is part of the next version", now.Kind, now.Name, now.Copy)
		}
	}
}
