// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/gates"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// previewPoll is how often the endpoints of a preview Service are looked at while a step waits
// for them, which lasts some seconds.
const previewPoll = time.Second

// promote has the target make the canary stable, once nothing holds all traffic up.
func promote(d *state.Draft) (another bool) {
	d.State.Progress = true
	routing.Upkeep(d)
	if d.Status.Step == nil {
		d.EnterStep(len(d.Steps))
	}
	if admitted, ended := gates.Admit(d, strategy.Route{Weight: strategy.FullWeight}, d.Workload.Replicas); !admitted {
		return ended
	}
	return targetOf(d.Rollout).Act(d, state.PhasePromoting)
}

// takeStep takes the present step as far as it goes now: pods, then traffic, then time
// and evidence. A step that removes something removes the traffic first.
func takeStep(d *state.Draft) (another bool) {
	i, s := d.Present()
	now, want := d.Status.Step, podsOf(&d.Snapshot, s)
	d.State.Progress = true
	routing.Upkeep(d)
	if now.ProgrammedAt == nil {
		if admitted, ended := gates.Admit(d, s.Route, want); !admitted {
			return ended
		}
	}
	fewer := lowers(&d.Snapshot, s) || spares(&d.Snapshot, want)
	routed, ready := d.Routed(s.Route), d.Ready(want)
	if fewer || ready {
		d.Request(s.Route)
	}
	switch {
	case fewer && !routed:
		// Fewer requests first, and then fewer pods for them.
		d.Say(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until no more than %s goes to the canary: %s.", now.Summary, s.Share(), routing.TrafficWait(&d.Snapshot, s.Route))
	case !ready:
		routing.Scale(d, want)
		d.Say(v1alpha1.ReasonWaitingForPods, "Step %s: %s.", now.Summary, d.Missing(want))
		routing.NoteLoss(d)
	case !routed:
		d.Say(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until %s goes to the canary: %s.", now.Summary, s.Share(), routing.TrafficWait(&d.Snapshot, s.Route))
		routing.NoteLoss(d)
	case hidden(&d.Snapshot, s):
		d.Wait(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until the preview Service %q leads to the canary: %s.", now.Summary, d.Preview.Name, d.Unseen)
		d.WakeIn(previewPoll)
	default:
		now.InterruptedAt = nil
		return hold(d, i)
	}
	return routing.OrTooLate(d)
}

// hidden reports whether the preview Service, which alone leads to the canary in this step, does not
// yet: who tries the new version must not meet the old one.
func hidden(s *state.Snapshot, step strategy.Step) bool {
	return step.Weight == 0 && s.Status.Step.ProgrammedAt == nil && s.Unseen != ""
}

// lowers reports whether a step removes traffic from the canary.
func lowers(s *state.Snapshot, step strategy.Step) bool {
	return !s.ByReplicas && s.Status.Step.ProgrammedAt == nil && s.Split.Observed > step.Weight && slices.Equal(s.LastRequested().Matches, step.Matches)
}

// spares reports whether a step needs fewer pods than the one before, so that those
// there are suffice for either route.
func spares(s *state.Snapshot, pods int32) bool {
	return !s.ByReplicas && s.Scales() && s.Status.Step.ProgrammedAt == nil && s.Canary != nil && s.Canary.Replicas > pods && s.Canary.Available >= pods
}

// podsOf is how many pods a step needs now.
func podsOf(s *state.Snapshot, step strategy.Step) int32 {
	if s.ByReplicas && step.Pods == nil {
		return strategy.SharedReplicas(step.Weight, s.Workload.Replicas)
	}
	return step.CanaryPods(s.Workload.Replicas)
}
