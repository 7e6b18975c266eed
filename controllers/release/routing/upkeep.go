// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// Upkeep puts right what nothing has to wait for.
func Upkeep(d *state.Draft) {
	Tidy(d)
	if m := d.Maker; m != nil {
		m.KeepBackends(d)
	}
}

// Tidy removes what earlier releases left.
func Tidy(d *state.Draft) {
	if m := d.Maker; m != nil {
		m.Tidy(d)
	}
}

// Scale sees to it that the canary has so many pods, where Serin makes them.
func Scale(d *state.Draft, want int32) {
	if m := d.Maker; m != nil {
		m.Scale(d, want)
	}
}

// RemoveSplit deletes the TrafficSplit, and reports whether it is gone.
func RemoveSplit(d *state.Draft) (gone bool) { return versions.DropSplit(&d.Draft, &d.Split.Split, "") }

// CleanUp returns the traffic to the root Service and removes what was made for
// the release. It reports whether all of it is gone.
func CleanUp(d *state.Draft) (done bool) {
	d.Status.Step, d.Leaving = nil, true
	if !RemoveSplit(d) {
		d.Wait(v1alpha1.ReasonCleaningUp, "Returning the traffic to the Service %q%s.", d.Rollout.Spec.Service, d.Split.Leaving())
		return false
	}
	if m := d.Maker; m != nil && !m.RemoveBackends(d) {
		return false
	}
	d.Status.Weight, d.Leaving = nil, false
	return true
}
