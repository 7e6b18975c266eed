// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// ReturnTraffic ends the release, returns the traffic to the root Service, and reports
// whether that is done.
func ReturnTraffic(d *state.Draft, end func(*state.Draft) bool) (done bool) {
	d.Status.Decision = nil // no rejected revision has to be known again
	if !endInTime(d, end) || !CleanUp(d) {
		d.State.Reason = v1alpha1.ReasonDeleting
		return false
	}
	return true
}

// endInTime ends the release. A router that has not confirmed by the deadline that the
// canary gets no traffic, counted from the deletion, is not waited for any more: then
// the split goes first, and its weights with it, while the pods of both versions
// still answer behind the Service.
func endInTime(d *state.Draft, end func(*state.Draft) bool) (done bool) {
	over, look := d.Over(d.Rollout.DeletionTimestamp.Add(d.Deadline))
	d.Wake(look)
	if !over || StopTraffic(d) {
		return end(d)
	}
	d.Actions = nil
	CleanUp(d)
	d.Say(v1alpha1.ReasonDeleting, "Returning the traffic to the Service %q, since the router did not confirm within %s that the canary gets none: %s.", d.Rollout.Spec.Service, state.Brief(d.Deadline), TrafficWait(&d.Snapshot, strategy.Route{}))
	return false
}
