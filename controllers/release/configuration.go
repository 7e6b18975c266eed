// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
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
	Target
}

// live settles first which version the workload's template is; but in the middle of
// a release that comes last: what the traffic says never waits for it, and the
// template changes under the release as when a person changes it.
func (p *pass) live() {
	if !p.begun() && (p.outdated() || p.unsettled()) {
		p.say(v1alpha1.ReasonConfigurationChanged, "Another content of a ConfigMap or Secret becomes part of the next version.")
		p.state.progress = true
	} else {
		p.converge()
	}
	p.configure()
}

// settleTime is how long a change of a content or of the template waits for one of the
// other: who changes both in one go wants one release.
const settleTime = 5 * time.Second

// unsettled reports whether a content changed only just now.
func (p *pass) unsettled() bool {
	c := p.Configuration
	return !c.ChangedAt.IsZero() && p.Now.Before(c.ChangedAt.Add(settleTime))
}

// settling reports whether the other change may still come.
func (p *pass) settling() bool {
	over := p.status.Step.StartedAt.Add(settleTime)
	if !p.Configuration.Asked || !p.Now.Before(over) {
		return false
	}
	p.say(v1alpha1.ReasonPreparing, "Waiting for a moment whether a ConfigMap or Secret changes too.")
	p.state.progress = true
	p.wake(over)
	return true
}

// outdated reports whether the template means other contents than it says, and may
// be changed: a Deployment that is not held yet would roll out unseen what is written
// now. The first version is rolled out without steps anyway.
func (p *pass) outdated() bool {
	w := p.Workload
	if w.Presence != Present || w.Deleting || p.Configuration.Template == p.Configuration.Wanted {
		return false
	}
	held := w.ManagedBy == p.Rollout.Name && (w.Paused || p.GuardInForce)
	return held || p.status.Stable == nil && !w.Settled
}

// configure has the template say which contents it means, which makes another
// content another version.
func (p *pass) configure() {
	c := p.Configuration
	p.noteContents()
	p.status.Configuration = c.Recorded
	for _, ref := range c.Missing {
		p.do(KeepContent{Kind: ref.Kind, Name: ref.Name})
	}
	switch {
	case !p.begun() && p.unsettled():
		p.wake(c.ChangedAt.Add(settleTime))
	case p.outdated():
		p.do(SetConfiguration{Value: c.Wanted})
	case p.begun():
	default:
		for _, unused := range c.Unused {
			p.do(DropContent{Copied: unused})
		}
	}
}

// noteContents tells people, once, of contents that have become part of a version.
func (p *pass) noteContents() {
	for _, now := range p.Configuration.Recorded {
		if !slices.Contains(p.status.Configuration, now) {
			p.note(false, v1alpha1.ReasonConfigurationChanged, "The content of the %s %q is kept as %q and is part of the next version", now.Kind, now.Name, now.Copy)
		}
	}
}
