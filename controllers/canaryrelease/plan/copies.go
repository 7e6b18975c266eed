// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// dropCopies removes the copies that are not kept, and reports whether they are gone. They
// are the only thing that Serin can't remove with rights of its own: a right that the
// ServiceAccount lacks is said, for a person, and what it allows goes first.
func (p *pass) dropCopies(keep func(Copy) bool) bool {
	var denied []Copy
	done := true
	for _, c := range p.Copies {
		if c.Presence == Absent || c.Presence == Present && !c.Ours || keep(c) {
			continue
		}
		if p.abandoned(c) {
			continue
		}
		done = false
		switch {
		case c.Denied != "":
			denied = append(denied, c)
		case c.Presence == Unknown:
			p.wait(v1alpha1.ReasonCleaningUp, "Waiting, since the %s %s can't be read.", c.Kind, c.Name)
		default:
			p.dropCopy(c)
			p.wait(v1alpha1.ReasonCleaningUp, "Removing what only the canary read.")
		}
	}
	for _, c := range denied { // last, since a right that is still lacking ends the actions
		p.dropCopy(c)
	}
	if len(denied) > 0 {
		p.sayDenied(denied)
	}
	return done
}

// abandoned reports whether a deletion goes on without a copy that is out of reach.
func (p *pass) abandoned(c Copy) bool {
	if c.Presence == Present && c.Denied == "" || !p.overdue() {
		return false
	}
	why := ""
	if c.Denied != "" {
		why = ". " + c.Denied
	}
	p.note(true, v1alpha1.ReasonDeleting, "The %s %s can't be removed and may be left; delete it%s", c.Kind, c.Name, why)
	return true
}

func (p *pass) dropCopy(c Copy) {
	if c.Presence == Present {
		p.do(DropCopy{Kind: c.Kind, Target: Target{Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion}})
	}
}

// sayDenied tells a person which copies are out of reach, and which right is lacking. It
// comes after what is said already. Nothing is under way when nothing else is left to do.
func (p *pass) sayDenied(copies []Copy) {
	const most = 3
	var names, rights []string
	for i, c := range copies {
		if i < most {
			names = append(names, fmt.Sprintf("the %s %s", c.Kind, c.Name))
		}
		if !slices.Contains(rights, c.Denied) {
			rights = append(rights, c.Denied)
		}
	}
	if more := len(copies) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	reason := p.state.reason
	if reason == "" {
		reason = v1alpha1.ReasonCleaningUp
	}
	p.say(reason, "%s What only the canary reads is out of reach: %s. %s. Serin goes on by itself then.",
		p.state.message, strings.Join(names, ", "), strings.Join(rights, "; "))
	p.state.stalled = !p.state.progress
}
