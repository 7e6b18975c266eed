// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// snapshot is everything that is known about a Rollout. Nothing here changes it.
type snapshot struct {
	Observation
	settings

	// status is the record: the observed one, with what was decided in this look.
	status v1alpha1.RolloutStatus
	facts
	// refusal is why the Rollout can't be served; nil when it can.
	refusal *kit.Statement

	// judged is whether the traffic since the last look was judged in this one, and
	// failing whether it missed what it is held against, whatever is done about that.
	judged  bool
	failing bool
	verdict judge.Result
}

func (s *snapshot) deleting() bool { return !s.Rollout.DeletionTimestamp.IsZero() }

func (s *snapshot) decided(a v1alpha1.DecisionAction) bool {
	return s.status.Decision != nil && s.status.Decision.Action == a
}

// rolledBack reports whether the version that is released was rejected.
func (s *snapshot) rolledBack() bool {
	return s.decided(v1alpha1.ActionRollBack) && s.status.Decision.Revision == s.revision
}

// returning reports whether a version comes back that was stable not long ago:
// that is a rollback, which nothing may hold up.
func (s *snapshot) returning() bool {
	return s.decided(v1alpha1.ActionPromote) && s.status.Decision.Reason == reasonRollbackWindow
}

// begun reports whether the release has done anything yet.
func (s *snapshot) begun() bool { return s.status.Canary != nil && s.status.Canary.StartedAt != nil }

// paused reports whether the analysis failed and it is left to a user what to do.
func (s *snapshot) paused() bool { return s.pauseOnFailure && s.failing }

// accepted reports whether a user wants to go on although the analysis failed. A
// promotion after the last step is no such wish: what comes up while it waits counts.
func (s *snapshot) accepted() bool {
	if s.decided(v1alpha1.ActionPromote) && s.status.Decision.Reason != reasonPassed {
		return true
	}
	step := s.status.Step
	return step != nil && (step.FailureAccepted && step.ProgrammedAt == nil || step.AnalysisSkipped)
}

// called reports whether the canary gets traffic by what was observed.
func (s *snapshot) called() bool {
	if s.byReplicas {
		step := s.status.Step
		return step != nil && step.ProgrammedAt != nil && step.Weight > 0
	}
	return s.Split.Presence == kit.Present && s.Split.Observed > 0
}

// asked reports whether the router was asked for a route last.
func (s *snapshot) asked(r Route) bool {
	return s.Split.Presence == kit.Present && s.Split.Requested.equal(r)
}

// routed reports whether the router reports a route in effect.
func (s *snapshot) routed(r Route) bool {
	return s.byReplicas || s.asked(r) && s.Split.Programmed && s.Split.Observed == r.Weight
}

// lastAsked is what Serin asked the router for last: the route of the present step where
// the split asks for it and may, since the record of that may still be to come, and else
// the route on record.
func (s *snapshot) lastAsked() Route {
	if s.status.Step != nil && s.begun() && s.asksForStep() {
		return s.nextRoute()
	}
	return s.recordedRoute()
}

// asksForStep reports whether the split sends what the present step, which is not live yet,
// is to send, and its pods suffice: Serin would write the same now, whoever wrote it.
func (s *snapshot) asksForStep() bool {
	next := s.nextRoute()
	if s.status.Step.ProgrammedAt != nil || s.Split.Presence != kit.Present || !s.Split.Requested.sameRequests(next) {
		return false
	}
	fewer := next.below(s.recordedRoute())
	return fewer || s.canary != nil && s.canary.Available >= canaryReplicas(next.Weight, s.Workload.Replicas)
}

// recordedRoute is the route on record.
func (s *snapshot) recordedRoute() Route {
	if w := s.status.Weight; w != nil {
		return Route{Weight: w.Requested, Matches: w.Matches}
	}
	return Route{}
}

// stepAt is a step as it is taken now: after an early promotion, the last one sends
// nearly everything to the canary.
func (s *snapshot) stepAt(i int) step {
	out := s.steps[i]
	now := s.status.Step
	if now == nil || now.HoldoutUntil == nil || !s.early || int(now.Index) != i || i != len(s.steps)-1 {
		return out
	}
	if out.Weight != now.HoldoutFrom || !out.canBeEarly() {
		return out // it was edited: the release goes on at what it says now
	}
	out.Route, out.pods = Route{Weight: holdoutWeight}, nil
	out.judge.MaxBadPromotion = 0
	return out
}

// present is the present step.
func (s *snapshot) present() (int, step) {
	i := min(int(s.status.Step.Index), len(s.steps)-1)
	return i, s.stepAt(i)
}

// nextRoute is the route of the present step, or of the promotion.
func (s *snapshot) nextRoute() Route {
	if i := int(s.status.Step.Index); i < len(s.steps) && !s.decided(v1alpha1.ActionPromote) {
		return s.stepAt(i).Route
	}
	return Route{Weight: fullWeight}
}

// endOf is when the hold of step i, which is in effect, is over.
func (s *snapshot) endOf(i int) time.Time {
	if step := s.status.Step; step.HoldoutUntil != nil {
		return step.HoldoutUntil.Time
	}
	return s.status.Step.ProgrammedAt.Add(s.steps[i].hold)
}

// replicaSet finds the first ReplicaSet that matches.
func (s *snapshot) replicaSet(match func(*kit.ReplicaSet) bool) *kit.ReplicaSet {
	return versions.Find(s.ReplicaSets, match)
}

// stable is the ReplicaSet of the stable version, nil when none is known.
func (s *snapshot) stable() *kit.ReplicaSet {
	if s.status.Stable == nil {
		return nil
	}
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && r.Revision == s.status.Stable.Revision
	})
}

// over reports whether a deadline has passed, by what may be known of it, and when to
// look again if it has not.
func (s *snapshot) over(end time.Time) (over bool, look time.Time) {
	if s.Now.Before(end) {
		return false, end
	}
	if caughtUp := s.Jump.To.Add(catchUpTime); s.Jump.From.Before(end) && !s.Jump.To.Before(end) && s.Now.Before(caughtUp) {
		return false, caughtUp
	}
	return true, time.Time{}
}
