// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// takeStep takes the present step as far as it goes now: pods, then traffic, then time
// and evidence. A step that takes something away takes the traffic first.
func takeStep(d *draft) (another bool) {
	i, s := d.present()
	now, want := d.status.Step, podsOf(&d.snapshot, s)
	d.State.Progress = true
	upkeep(d)
	if now.ProgrammedAt == nil {
		if admitted, ended := admit(d, s.Route, want); !admitted {
			return ended
		}
	}
	fewer := lowers(&d.snapshot, s) || spares(&d.snapshot, want)
	routed, ready := d.routed(s.Route), d.ready(want)
	if fewer || ready {
		d.request(s.Route)
	}
	switch {
	case fewer && !routed:
		// Fewer requests first, and then fewer pods for them.
		d.Say(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until no more than %s goes to the canary: %s.", now.Summary, s.share(), trafficWait(&d.snapshot, s.Route))
	case !ready:
		scale(d, want)
		d.Say(v1alpha1.ReasonWaitingForPods, "Step %s: %s.", now.Summary, d.missing(want))
		noteLoss(d)
	case !routed:
		d.Say(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until %s goes to the canary: %s.", now.Summary, s.share(), trafficWait(&d.snapshot, s.Route))
		noteLoss(d)
	default:
		now.InterruptedAt = nil
		return hold(d, i)
	}
	return orTooLate(d)
}

// lowers reports whether a step takes traffic away from the canary.
func lowers(s *snapshot, step step) bool {
	return !s.byReplicas && s.status.Step.ProgrammedAt == nil && s.Split.Observed > step.Weight && slices.Equal(s.lastAsked().Matches, step.Matches)
}

// spares reports whether a step needs fewer pods than the one before, so that those
// there are suffice for either route.
func spares(s *snapshot, pods int32) bool {
	return !s.byReplicas && s.scales() && s.status.Step.ProgrammedAt == nil && s.canary != nil && s.canary.Replicas > pods && s.canary.Available >= pods
}

// podsOf is how many pods a step needs now.
func podsOf(s *snapshot, step step) int32 {
	if s.byReplicas && step.pods == nil {
		return sharedReplicas(step.Weight, s.Workload.Replicas)
	}
	return step.canaryPods(s.Workload.Replicas)
}

// noteLoss begins the time that a step has to be in effect again. Restarts of single
// pods begin it anew only when all of them were back.
func noteLoss(d *draft) {
	if s := d.status.Step; s.ProgrammedAt != nil && s.InterruptedAt == nil {
		s.InterruptedAt = new(d.micro())
	}
}

// orTooLate rolls back a step that takes too long to get ready, or to be ready again, and
// reports whether it does.
func orTooLate(d *draft) (rejected bool) {
	s := d.status.Step
	if s == nil || !d.begun() {
		return false
	}
	since, what := s.PreparedAt, "was not live"
	if s.ProgrammedAt != nil {
		since, what = s.InterruptedAt, "was not live again"
	}
	if since == nil {
		return false
	}
	over, look := d.over(since.Add(d.deadline))
	if !over {
		d.wake(look)
		return false
	}
	reject(d, v1alpha1.ReasonProgressDeadlineExceeded, fmt.Sprintf("step %s %s within %s: %s", s.Summary, what, brief(d.deadline), d.detail()))
	return true
}
