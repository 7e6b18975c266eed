// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// RecogniseSplit does so with the split, and reports whether there may be objects of a
// release.
func RecogniseSplit(s *Snapshot) bool {
	if s.Status.Weight == nil || !s.Begun() && s.Status.Stable == nil {
		return false
	}
	if split := &s.Split; split.Presence == kit.Present && !split.Ours {
		split.Ours, split.Requested = true, strategy.Route{Weight: -1}
	}
	return true
}

// Snapshot is everything that is known about a Rollout. Nothing here changes it.
type Snapshot struct {
	Observation
	strategy.Settings

	// Status is the record: the observed one, with what was decided in this look.
	Status v1alpha1.RolloutStatus
	Facts
	// Refusal is why the Rollout can't be served; nil when it can.
	Refusal *kit.Statement

	// Judged is whether the traffic since the last look was judged in this one, and
	// Failing whether it missed what it is held against, whatever is done about that.
	Judged  bool
	Failing bool
	Verdict judge.Result
}

// Deleting reports whether the Rollout is being deleted.
func (s *Snapshot) Deleting() bool { return !s.Rollout.DeletionTimestamp.IsZero() }

// Decided reports whether the release ends in this way.
func (s *Snapshot) Decided(a v1alpha1.DecisionAction) bool {
	return s.Status.Decision != nil && s.Status.Decision.Action == a
}

// RolledBack reports whether the version that is released was rejected.
func (s *Snapshot) RolledBack() bool {
	return s.Decided(v1alpha1.ActionRollBack) && s.Status.Decision.Revision == s.Revision
}

// Returning reports whether a version comes back that was stable not long ago:
// that is a rollback, which nothing may hold up.
func (s *Snapshot) Returning() bool {
	return s.Decided(v1alpha1.ActionPromote) && s.Status.Decision.Reason == ReasonRollbackWindow
}

// Begun reports whether the release has done anything yet.
func (s *Snapshot) Begun() bool { return s.Status.Canary != nil && s.Status.Canary.StartedAt != nil }

// Paused reports whether the analysis failed and it is left to a user what to do.
func (s *Snapshot) Paused() bool { return s.PauseOnFailure && s.Failing }

// Accepted reports whether a user wants to go on although the analysis failed. A
// promotion after the last step does not say so: what comes up while it waits counts.
func (s *Snapshot) Accepted() bool {
	if s.Decided(v1alpha1.ActionPromote) && s.Status.Decision.Reason != ReasonPassed {
		return true
	}
	step := s.Status.Step
	return step != nil && (step.FailureAccepted && step.ProgrammedAt == nil || step.AnalysisSkipped)
}

// Called reports whether the canary gets traffic by what was observed.
func (s *Snapshot) Called() bool {
	if s.ByReplicas {
		step := s.Status.Step
		return step != nil && step.ProgrammedAt != nil && step.Weight > 0
	}
	return s.Split.Presence == kit.Present && s.Split.Observed > 0
}

// Requests reports whether the split requests a route.
func (s *Snapshot) Requests(r strategy.Route) bool {
	return s.Split.Presence == kit.Present && s.Split.Requested.Equal(r)
}

// Routed reports whether the router reports a route as live.
func (s *Snapshot) Routed(r strategy.Route) bool {
	return s.ByReplicas || s.Requests(r) && s.Split.Programmed && s.Split.Observed == r.Weight
}

// LastRequested is what Serin requested last: the route of the present step where
// the split requests it and may, since the record of that may still be to come, and else
// the route on record.
func (s *Snapshot) LastRequested() strategy.Route {
	if s.Status.Step != nil && s.Begun() && s.requestsStep() {
		return s.NextRoute()
	}
	return s.recordedRoute()
}

// requestsStep reports whether the split sends what the present step, which is not live yet,
// is to send, and its pods suffice: Serin would write the same now, whichever actor wrote it.
func (s *Snapshot) requestsStep() bool {
	next, all := s.nextStep(), s.Workload.Replicas
	if s.Status.Step.ProgrammedAt != nil || s.Split.Presence != kit.Present || !s.Split.Requested.SameRequests(next.Route) {
		return false
	}
	fewer := next.Below(s.recordedRoute())
	return fewer || s.Canary != nil && s.Canary.Available >= min(next.CanaryPods(all), strategy.CanaryReplicas(next.Weight, all))
}

// recordedRoute is the route on record.
func (s *Snapshot) recordedRoute() strategy.Route {
	if w := s.Status.Weight; w != nil {
		return strategy.Route{Weight: w.Requested, Matches: w.Matches}
	}
	return strategy.Route{}
}

// StepAt is a step as it is taken now: after an early promotion, the last one sends
// nearly everything to the canary.
func (s *Snapshot) StepAt(i int) strategy.Step {
	out := s.Steps[i]
	now := s.Status.Step
	if now == nil || now.HoldoutUntil == nil || !s.Early || int(now.Index) != i || i != len(s.Steps)-1 {
		return out
	}
	if out.Weight != now.HoldoutFrom || !out.CanBeEarly() {
		return out // it was edited: the release goes on at what it says now
	}
	out.Route, out.Pods = strategy.Route{Weight: strategy.HoldoutWeight}, nil
	out.Judge.MaxBadPromotion = 0
	return out
}

// Present is the present step.
func (s *Snapshot) Present() (int, strategy.Step) {
	i := min(int(s.Status.Step.Index), len(s.Steps)-1)
	return i, s.StepAt(i)
}

// NextRoute is the route of the present step, or of the promotion.
func (s *Snapshot) NextRoute() strategy.Route { return s.nextStep().Route }

// nextStep is the present step, or the promotion as one.
func (s *Snapshot) nextStep() strategy.Step {
	if i := int(s.Status.Step.Index); i < len(s.Steps) && !s.Decided(v1alpha1.ActionPromote) {
		return s.StepAt(i)
	}
	return strategy.Step{Route: strategy.Route{Weight: strategy.FullWeight}}
}

// EndOf is when the hold of step i, which is live, is over.
func (s *Snapshot) EndOf(i int) time.Time {
	if step := s.Status.Step; step.HoldoutUntil != nil {
		return step.HoldoutUntil.Time
	}
	return s.Status.Step.ProgrammedAt.Add(s.Steps[i].Hold)
}

// ReplicaSet finds the first ReplicaSet that matches.
func (s *Snapshot) ReplicaSet(match func(*kit.ReplicaSet) bool) *kit.ReplicaSet {
	return versions.Find(s.ReplicaSets, match)
}

// Stable is the ReplicaSet of the stable version, nil when none is known.
func (s *Snapshot) Stable() *kit.ReplicaSet {
	if s.Status.Stable == nil {
		return nil
	}
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && r.Revision == s.Status.Stable.Revision
	})
}

// Over reports whether a deadline has passed, by what may be known of it, and when to
// look again if it has not.
func (s *Snapshot) Over(end time.Time) (over bool, look time.Time) {
	if s.Now.Before(end) {
		return false, end
	}
	if caughtUp := s.Jump.To.Add(CatchUpTime); s.Jump.From.Before(end) && !s.Jump.To.Before(end) && s.Now.Before(caughtUp) {
		return false, caughtUp
	}
	return true, time.Time{}
}
