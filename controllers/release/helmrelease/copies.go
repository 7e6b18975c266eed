// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// dropCopies removes the copies that are not kept, and reports whether they are gone. They
// are the only thing that Serin can't remove with rights of its own: a right that the
// ServiceAccount lacks is in the message, and what it allows goes first.
func dropCopies(d *draft, keep func(Copy) bool) bool {
	var denied []Copy
	done := true
	for _, c := range d.Copies {
		if c.Presence == kit.Absent || c.Presence == kit.Present && !c.Ours || keep(c) {
			continue
		}
		if abandoned(d, c) {
			continue
		}
		done = false
		switch {
		case c.Denied != "":
			denied = append(denied, c)
		case c.Presence == kit.Unknown:
			d.Wait(v1alpha1.ReasonCleaningUp, "Waiting, since the %s %s can't be read.", c.Kind, c.Name)
		default:
			dropCopy(d, c)
			d.Wait(v1alpha1.ReasonCleaningUp, "Removing the objects that only the canary read.")
		}
	}
	for _, c := range denied { // last, since a right that is still lacking ends the actions
		dropCopy(d, c)
	}
	if len(denied) > 0 {
		sayDenied(d, denied)
	}
	return done
}

// abandoned reports whether a deletion goes on without a copy that is out of reach.
func abandoned(d *draft, c Copy) bool {
	switch {
	case c.Presence == kit.Present && c.Denied == "":
		return false
	case d.Doomed:
		return true // it goes with the namespace
	case !d.overdue():
		return false
	}
	why := ""
	if c.Denied != "" {
		why = ". " + c.Denied
	}
	d.Note(true, v1alpha1.ReasonDeleting, "The %s %s can't be removed and may be left; delete it%s", c.Kind, c.Name, why)
	return true
}

func dropCopy(d *draft, c Copy) {
	if c.Presence == kit.Present {
		d.Do(DropCopy{Kind: c.Kind, Object: c.Object})
	}
}

// sayDenied says which copies are out of reach, and which right is lacking. It
// comes after what is said already. Nothing is under way when nothing else is left to do.
func sayDenied(d *draft, copies []Copy) {
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
	reason := d.State.Reason
	if reason == "" {
		reason = v1alpha1.ReasonCleaningUp
	}
	d.Say(reason, "%s Serin can't remove objects that only the canary read: %s. %s. Then Serin goes on by itself.",
		d.State.Message, strings.Join(names, ", "), strings.Join(rights, "; "))
	d.State.Stalled = !d.State.Progress
}
