// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Open reports whether step i may begin: the one after the last step is the promotion.
// It says what holds it up; a hook that refuses ends the release.
func Open(d *state.Draft, i int, since time.Time) (opened, ended bool) {
	if o := GrowthObstacle(&d.Snapshot); o != nil {
		WaitFor(d, o)
		return false, false
	}
	d.Wake(ClosesAt(&d.Snapshot))
	if o := timeObstacle(&d.Snapshot, i, since); o != nil {
		WaitFor(d, o)
		return false, false
	}
	if i == 0 {
		if opened, ended := CallHooks(d, v1alpha1.HookBeforeRelease, i); !opened {
			return false, ended
		}
	}
	if i >= len(d.Steps) {
		return true, false
	}
	return CallHooks(d, v1alpha1.HookBeforeStep, i)
}

// Admit lets a route be prepared now, and begins its deadline. A route that was
// requested already completes; time that is held up does not count.
func Admit(d *state.Draft, r strategy.Route, pods int32) (admitted, ended bool) {
	s := d.Status.Step
	if !underWay(&d.Snapshot, r, pods) {
		if admitted, ended = grow(d); !admitted {
			s.PreparedAt = nil
			return false, ended
		}
	}
	if s.PreparedAt == nil {
		s.PreparedAt = new(d.Micro())
	}
	return true, false
}

// underWay reports whether a route was requested already.
func underWay(s *state.Snapshot, r strategy.Route, pods int32) bool {
	if s.ByReplicas && s.Canary != nil && s.Canary.Replicas == pods {
		// As many pods as the promotion needs don't mean that it has begun.
		return s.Status.Step.PreparedAt != nil || !s.Decided(v1alpha1.ActionPromote)
	}
	return s.Requests(r)
}

// grow reports whether the traffic may grow now, and to all of it if that is what comes
// next. It says what holds it up.
func grow(d *state.Draft) (may, ended bool) {
	o := GrowthObstacle(&d.Snapshot)
	// Without traffic there would never be any other evidence.
	if o == nil && d.Verdict.Reason == judge.ReasonSuspected && !d.Accepted() && d.LastRequested().Weight > 0 {
		o = &Obstacle{reason: v1alpha1.ReasonWaitingForEvidence, what: "waiting, since evidence against the canary appeared after the previous step", look: ClosesAt(&d.Snapshot)}
	}
	if o != nil {
		WaitFor(d, o)
		return false, false
	}
	d.Wake(ClosesAt(&d.Snapshot))
	if !takesAll(&d.Snapshot) {
		return true, false
	}
	return CallHooks(d, v1alpha1.HookBeforePromotion, len(d.Steps))
}

// takesAll reports whether all traffic goes to the canary next: by the promotion, or
// by a step that leaves nothing for it.
func takesAll(s *state.Snapshot) bool {
	if s.Decided(v1alpha1.ActionPromote) {
		return !s.Returning()
	}
	step := s.Status.Step
	return !s.ByReplicas && (step.Weight == strategy.FullWeight || step.HoldoutUntil != nil) && len(step.Matches) == 0
}
