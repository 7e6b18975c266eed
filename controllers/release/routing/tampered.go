// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/gates"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Tampered reports whether another actor wrote what goes to the canary. Whatever that
// says, it never counts as progress.
func Tampered(s *state.Snapshot) bool {
	last, now := s.LastRequested(), s.Split.Requested
	if s.ByReplicas || s.Split.Presence != kit.Present || now.SameRequests(last) {
		return false
	}
	if !Grows(s) || gates.GrowthObstacle(s) != nil {
		return true
	}
	switch {
	case s.Canary == nil || s.Canary.Available < strategy.CanaryReplicas(last.Weight, s.Workload.Replicas):
		return false // the step sees to the pods first
	case s.Status.Step.ProgrammedAt == nil && s.NextRoute().SameRequests(last):
		return false // it is what the step is about to write
	}
	return true
}

// Grows reports whether to set the canary's traffic back gives it more. That needs what
// every growth needs: the route on record may be one that was never written, since
// the operator crashed in between.
func Grows(s *state.Snapshot) bool {
	return s.Split.Requested.Weight >= 0 && s.Split.Requested.Below(s.LastRequested())
}

// RestoreRoute writes again what Serin requested last.
func RestoreRoute(d *state.Draft) (another bool) {
	d.State.Progress = true
	Upkeep(d)
	if Grows(&d.Snapshot) {
		if o := gates.GrowthObstacle(&d.Snapshot); o != nil {
			gates.WaitFor(d, o)
			d.Status.Step.PreparedAt, d.Status.Step.InterruptedAt = nil, nil
			return false
		}
		d.Wake(gates.ClosesAt(&d.Snapshot))
	}
	last := d.LastRequested()
	d.Request(last)
	d.Say(v1alpha1.ReasonWaitingForTraffic, "Step %s: %s is not what Serin requested last: setting it back to %s.", d.Status.Step.Summary, d.Place, last.Share())
	NoteLoss(d)
	return OrTooLate(d)
}
