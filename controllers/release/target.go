// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// target is what a kind of object that is released has of its own. The engine is the
// same for all of them. Another kind needs an implementation, its facts in the
// Observation, and a line in targetOf.
type target interface {
	// identify says which version is released, and what its pods are; nil when there
	// are none. recognise takes objects for ours that lost their mark.
	identify(s *snapshot) (revision string, canary *canary)
	recognise(s *snapshot)
	// note puts on record what others decide about the stable version.
	note(d *draft)
	// gone reports whether there is nothing to go back to.
	gone(s *snapshot) bool
	// refuse says why it can't be released as the spec wants; nil when it can.
	refuse(s *snapshot) *kit.Statement
	phases
	pods
	traffic
}

// phases are what a target does outside of steps.
type phases interface {
	// assess is the phase outside of releases, hindrance before a release may begin,
	// and unprepared before traffic may move: phaseReleasing when there is none.
	assess(s *snapshot) phase
	hindrance(s *snapshot) phase
	unprepared(s *snapshot) phase
	// act acts for such a phase.
	act(d *draft, p phase) (another bool)
	// promote makes the canary stable, which may have all traffic now. rollBack takes a
	// rejected canary out. restore gives everything back when the Rollout is deleted.
	// withdraw keeps a canary without traffic that can't be released.
	promote(d *draft) (another bool)
	rollBack(d *draft) (another bool)
	restore(d *draft) (another bool)
	withdraw(d *draft)
}

// pods are the pods of the canary.
type pods interface {
	// scales is whether Serin makes them: all others only wait for them.
	scales() bool
	// ready reports whether there are as many as wanted, scale sees to it, and missing
	// says what is still missing.
	ready(s *snapshot, want int32) bool
	scale(d *draft, want int32)
	missing(s *snapshot, want int32) string
	// tidy removes what earlier releases left, which nothing waits for.
	tidy(d *draft)
	// count is how many a version has, and how many of them are ready.
	count(s *snapshot, v *v1alpha1.VersionStatus) (replicas, ready int32)
}

// traffic is what moves the traffic.
type traffic interface {
	// write asks for a route, and where names the place that it is written to.
	write(d *draft, r Route)
	where() string
	// free reports whether the canary gets no traffic, whatever a router confirms, and
	// repair fixes what keeps a router from confirming it.
	free(s *snapshot) bool
	repair(d *draft)
	// ungoverned reports whether nobody governs the traffic any more.
	ungoverned(s *snapshot) bool
	// keepBackends writes the Services of the versions where they are not what they are to
	// be. removeBackends removes them, and reports whether they are gone.
	keepBackends(d *draft)
	removeBackends(d *draft) (done bool)
}

func targetOf(ro *v1alpha1.Rollout) target {
	switch {
	case ro.Spec.Services != nil:
		return servicePair{}
	case ro.Spec.WorkloadRef.Kind == v1alpha1.KindCanaryRelease:
		return canaryRelease{}
	default:
		return deployment{}
	}
}

// canary is what the pods of the version that is released are like.
type canary struct {
	// Replicas wanted, existing, and available.
	Replicas, Existing, Available int32
	// Failure says why they can't be created; "" when they can.
	Failure string
}
