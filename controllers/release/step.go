// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// prepare puts the traffic under control while there is no canary yet.
func (p *pass) prepare(stable *ReplicaSet) bool {
	if p.byReplicas {
		return true
	}
	stablePoints := p.point(v1alpha1.RoleStable, stable.Revision, p.StableService)
	canaryPoints := p.point(v1alpha1.RoleCanary, p.revision, p.CanaryService)
	ready := stablePoints && canaryPoints
	if p.Split.Presence == Absent {
		p.ensureRoute(Route{})
		ready = false
	}
	promoting := p.decided(v1alpha1.ActionPromote) && p.Split.Observed >= 0
	if p.canary != nil && (!p.canary.gone() || promoting) && ready {
		return true
	}
	if ready && p.ensureRoute(Route{}) {
		return true
	}
	if s := p.status.Step; s.PreparedAt == nil {
		s.PreparedAt = new(p.micro()) // the router has no more time than anybody else
	}
	p.say(v1alpha1.ReasonPreparing, "Putting the traffic of the Service %q under control before the canary exists: %s.", p.Rollout.Spec.Service, p.trafficWait(Route{}))
	p.state.progress = true
	return false
}

// point makes the Service of a version select a revision, and reports whether it
// does.
func (p *pass) point(role, revision string, live Backend) bool {
	points := live.Presence == Present && live.Revision == revision
	if !points || !live.UpToDate {
		p.do(ApplyBackend{Role: role, Revision: revision})
	}
	return points
}

// step takes the present step as far as it goes now.
func (p *pass) step() {
	i := min(int(p.status.Step.Index), len(p.steps)-1)
	s := p.steps[i]
	pods := p.podsOf(s)
	switch {
	case p.status.Step.ProgrammedAt == nil && !p.prepared(s.Route, pods):
	case (p.lowers(s) || p.spares(pods)) && !p.ensureRoute(s.Route):
		// Fewer requests first, and then fewer pods for them.
		p.say(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until no more than %s goes to the canary: %s.", p.status.Step.Summary, s.share(), p.trafficWait(s.Route))
		p.checkDeadline()
	case !p.ensurePods(pods):
		p.noteLoss()
		p.checkDeadline()
	case !p.ensureRoute(s.Route):
		p.say(v1alpha1.ReasonWaitingForTraffic, "Step %s: waiting until %s goes to the canary: %s.", p.status.Step.Summary, s.share(), p.trafficWait(s.Route))
		p.noteLoss()
		p.checkDeadline()
	default:
		p.forgetLoss()
		p.hold(i)
	}
}

// lowers reports whether a step takes traffic away from the canary.
func (p *pass) lowers(s step) bool {
	return !p.byReplicas && p.status.Step.ProgrammedAt == nil && p.Split.Observed > s.Weight && slices.Equal(p.lastAsked().Matches, s.Matches)
}

// spares reports whether a step needs fewer pods than the one before, so that those
// there are suffice for either route.
func (p *pass) spares(pods int32) bool {
	return !p.byReplicas && !p.elsewhere() && p.status.Step.ProgrammedAt == nil && p.canary != nil && p.canary.Replicas > pods && p.canary.Available >= pods
}

// podsOf is how many pods a step needs now.
func (p *pass) podsOf(s step) int32 {
	if p.byReplicas && s.pods == nil {
		return sharedReplicas(s.Weight, p.Workload.Replicas)
	}
	return s.canaryPods(p.Workload.Replicas)
}

// prepared reports whether a route may be prepared now. What was asked of the
// router already is seen through; time that is held up does not count for the
// deadline.
func (p *pass) prepared(r Route, pods int32) bool {
	s := p.status.Step
	under := p.asked(r)
	if p.byReplicas && p.canary != nil && p.canary.Replicas == pods {
		// As many pods as the promotion needs don't mean that it has begun.
		under = s.PreparedAt != nil || !p.decided(v1alpha1.ActionPromote)
	}
	if !under && !p.clear() {
		s.PreparedAt = nil
		return false
	}
	if s.PreparedAt == nil {
		at := p.micro()
		s.PreparedAt = &at
	}
	return true
}

// clear reports whether the traffic may grow now, and to all of it if that is
// what comes next.
func (p *pass) clear() bool {
	if !p.mayGrow() {
		return false
	}
	// Without traffic there would never be any other evidence.
	if p.verdict.Reason == judge.ReasonSuspected && !p.accepted() && p.lastAsked().Weight > 0 {
		p.wait(v1alpha1.ReasonWaitingForEvidence, "waiting, since evidence against the canary came up after the step before")
		return false
	}
	return !p.takesAll() || p.approved(v1alpha1.HookBeforePromotion, len(p.steps))
}

// takesAll reports whether all traffic goes to the canary next: by the promotion, or
// by a step that leaves nothing for it.
func (p *pass) takesAll() bool {
	if p.decided(v1alpha1.ActionPromote) {
		return !p.returning()
	}
	s := p.status.Step
	return !p.byReplicas && (s.Weight == fullWeight || s.HoldoutUntil != nil) && len(s.Matches) == 0
}

// ensurePods scales the canary and reports whether it is at that scale and its
// pods are available.
func (p *pass) ensurePods(want int32) bool {
	if p.paired() {
		return p.pairReady()
	}
	if p.delegated() {
		return p.delegatedPods()
	}
	canary := p.canary
	switch {
	case canary == nil && p.former() != nil:
		p.do(ClaimCanary{target(p.former())})
	case canary == nil:
		p.do(CreateCanary{Revision: p.revision, Replicas: want})
	case canary.Replicas != want || canary.Desired != p.Workload.Replicas:
		p.do(ScaleReplicaSet{Target: target(canary), Replicas: want, Desired: p.Workload.Replicas})
	}
	if canary != nil && canary.Available >= want && canary.Replicas == want && canary.Desired == p.Workload.Replicas {
		return true
	}
	p.sayPods(want)
	return false
}

// sayPods says how many of the canary's pods are missing, and why none can be made.
func (p *pass) sayPods(want int32) {
	var now ReplicaSet
	if p.canary != nil {
		now = *p.canary
	}
	p.say(v1alpha1.ReasonWaitingForPods, "Step %s: %d of the canary's %d pods are available.", p.status.Step.Summary, now.Available, want)
	if now.Failure != "" {
		p.state.message = shorten(fmt.Sprintf("%s Its pods can't be created: %s", p.state.message, now.Failure))
	}
}

// lossSince is since when a step that was in effect lacks pods, or its weight is not
// in effect any more; nil when it lacks nothing.
func lossSince(s *v1alpha1.StepStatus) *metav1.MicroTime {
	if s.ProgrammedAt == nil || s.PreparedAt == nil || !s.PreparedAt.After(s.ProgrammedAt.Time) {
		return nil
	}
	return s.PreparedAt
}

// noteLoss begins the time that a step has to be in effect again. Restarts of single
// pods begin it anew only when all of them were back.
func (p *pass) noteLoss() {
	if s := p.status.Step; s.ProgrammedAt != nil && lossSince(s) == nil {
		s.PreparedAt = new(p.micro())
	}
}

func (p *pass) forgetLoss() {
	if s := p.status.Step; lossSince(s) != nil {
		s.PreparedAt = nil
	}
}

// checkDeadline rolls back a step that takes too long to get ready, or to be ready
// again.
func (p *pass) checkDeadline() {
	s := p.status.Step
	if s == nil || s.PreparedAt == nil || !p.begun() || s.ProgrammedAt != nil && lossSince(s) == nil {
		return
	}
	if !p.passed(s.PreparedAt.Add(p.deadline)) {
		return
	}
	what := "was not in effect"
	if s.ProgrammedAt != nil {
		what = "was not in effect again"
	}
	p.reject(v1alpha1.ReasonProgressDeadlineExceeded, fmt.Sprintf("step %s %s within %s: %s", s.Summary, what, brief(p.deadline), p.detail()))
}
