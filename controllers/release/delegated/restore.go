// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// restore clears what the Rollout decides. A canary that it gave traffic loses that first,
// and an end that it requested comes first, both for as long as the deadline.
func restore(d *state.Draft) (another bool) {
	if d.Status.Canary != nil && d.Status.Canary.Revision != d.Revision {
		record.Supersede(d)
		return true
	}
	if consents(&d.Snapshot) {
		over, look := d.Over(d.Rollout.DeletionTimestamp.Add(d.Deadline))
		d.Wake(look)
		if !over && !released(d) {
			return false
		}
	}
	d.Actions = nil
	d.Wait(v1alpha1.ReasonDeleting, "Restoring the CanaryRelease %q.", d.Rollout.Spec.WorkloadRef.Name)
	d.Status.Weight, d.Status.Step = nil, nil
	if consents(&d.Snapshot) && d.Delegated.Held {
		d.Do(state.ClearDelegation{})
	}
	d.Do(kit.RemoveFinalizer{})
	return false
}

// released reports whether the CanaryRelease needs the Rollout no more, and sees to it.
func released(d *state.Draft) bool {
	c, name := &d.Delegated, d.Rollout.Spec.WorkloadRef.Name
	switch {
	case c.Over():
		return true
	case c.Transition != v1alpha1.CanaryTransitionNone:
		d.Wait(v1alpha1.ReasonDeleting, "Waiting until the CanaryRelease %q has ended. %s", name, c.Message)
		return false
	case c.Decision != nil || c.Deleting || c.Unshared:
		return true
	}
	d.Request(strategy.Route{})
	if d.Routed(strategy.Route{}) {
		return true
	}
	d.Wait(v1alpha1.ReasonDeleting, "Waiting until the CanaryRelease %q sends no traffic to its canary: %s.", name, routing.TrafficWait(&d.Snapshot, strategy.Route{}))
	return false
}
