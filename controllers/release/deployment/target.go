// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Target releases a Deployment: it is paused on its new template while Serin's
// ReplicaSet of that template is the canary, and adopts that ReplicaSet at the end.
//
//	phase          | holds when                                    | then
//	---------------+-----------------------------------------------+------------------------------
//	LeavingRouter  | shares are of pods, and a split is there      | the split goes
//	Adopting       | the canary was handed over                    | old pods go; it is stable
//	First          | no version is stable                          | the Deployment rolls out
//	(lost)         | stable's ReplicaSet was deleted               | see lost.go
//	(drifted)      | others changed the pods of a release          | see drift.go
//	Settled        | the template is the stable version            | clean up; ready
//	NoPods         | a new template, but no pods and no split      | it is stable without steps
//	Leftovers      | objects of an earlier release are in place    | clean up
//	Replacing      | a canary of an earlier template has pods      | its traffic, then its pods go
//	Suspended      | scaled to zero in the middle of a release     | no traffic; begin again later
//	SplitDeleted   | another actor deleted the split               | made again; the step begins again
//	Pausing        | the Deployment is not paused                  | it is
//	Preparing      | Services and split are not in place           | they are made
type Target struct{}

// The phases of a Deployment.
const (
	phaseLeavingRouter state.Phase = "LeavingRouter"
	phaseAdopting      state.Phase = "Adopting"
	phaseFirst         state.Phase = "First"
	phaseFallback      state.Phase = "Fallback"
	phaseStableLost    state.Phase = "StableLost"
	phaseLastCopy      state.Phase = "LastCopy"
	phaseReclaiming    state.Phase = "Reclaiming"
	phaseUnpaused      state.Phase = "Unpaused"
	phaseUnguarded     state.Phase = "Unguarded"
	phaseStale         state.Phase = "Stale"
	phaseSettled       state.Phase = "Settled"
	phaseNoPods        state.Phase = "NoPods"
	phaseLeftovers     state.Phase = "Leftovers"
	phaseReplacing     state.Phase = "Replacing"
	phaseSuspended     state.Phase = "Suspended"
	phaseSplitDeleted  state.Phase = "SplitDeleted"
	phasePausing       state.Phase = "Pausing"
	phasePreparing     state.Phase = "Preparing"
)

// Observe says what is released.
func (t Target) Observe(s *state.Snapshot) state.Facts {
	recognise(s)
	f := state.Facts{
		Revision: templateRevision(s), Unfit: refuse(s), Gone: workloadGone(s) || s.Service.Presence == kit.Absent,
		Place: "the TrafficSplit", Unconfirmed: s.Workload.Presence == kit.Absent, Writer: state.SplitWriter{}, Maker: t,
	}
	if s.CanaryService.Presence == kit.Present {
		f.CanaryEnd = s.CanaryService.Revision
	}
	if rs := canaryOf(s); rs != nil {
		f.Revision, f.Canary = rs.Revision, &state.Canary{Replicas: rs.Replicas, Existing: rs.Existing, Available: rs.Available, Desired: rs.Desired, Failure: rs.Failure}
	}
	if rs := s.Stable(); rs != nil {
		f.StableDown = rs.Replicas > 0 && rs.Available == 0
	}
	f.Ungoverned, f.Unseen = ungoverned(s, f.Canary), unseen(s, canaryOf(s))
	return f
}

// ungoverned reports whether the router or the split is gone, and its weights with it:
// the Service spreads the requests over all pods by now, and nothing measures them.
func ungoverned(s *state.Snapshot, c *state.Canary) bool {
	unserved := s.Split.Unserved && !s.RouterOffered
	return unserved || s.Split.Presence == kit.Absent && !s.ByReplicas && c != nil && c.Replicas+c.Existing > 0
}

// canaryOf is the ReplicaSet of the workload's template that Serin controls.
func canaryOf(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerSerin && r.Current && !r.Deleting })
}

// templateRevision names the workload's template without a canary: by the ReplicaSet that
// it had before, else by the name that a new one gets. One that was rolled back counts with any owner, or none: a
// backup brings it back without, and the Deployment with another name for a new one.
func templateRevision(s *state.Snapshot) string {
	if rejected := s.ReplicaSet(func(r *kit.ReplicaSet) bool { return isRejected(s, r) }); rejected != nil {
		return rejected.Revision
	}
	if previous := previousOf(s); previous != nil {
		return previous.Revision
	}
	return s.Workload.Revision
}

// previousOf is an old ReplicaSet of the Deployment with the present template, when
// the template was set back to an earlier version. The Deployment controller
// would prefer it to any other ReplicaSet of that template, so it must become
// the canary.
func previousOf(s *state.Snapshot) *kit.ReplicaSet {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && r.Current && r.Gone() && !r.Deleting
	})
}

// Assess finds the phase outside of a release.
func (Target) Assess(s *state.Snapshot) state.Phase {
	stable := s.Stable()
	switch {
	case s.Refusal == nil && leavesRouter(s):
		return phaseLeavingRouter
	case handedOver(s) != nil:
		return phaseAdopting
	case stable == nil:
		return assessLost(s)
	}
	if p := assessDrift(s); p != state.PhaseReleasing {
		return p
	}
	return assessSettled(s, stable)
}

// assessSettled finds out whether there is anything to release.
func assessSettled(s *state.Snapshot, stable *kit.ReplicaSet) state.Phase {
	switch {
	case stable.Current:
		return phaseSettled
	case s.Refusal != nil:
		return state.PhaseReleasing
	case s.Workload.Replicas == 0 && s.Split.Presence == kit.Absent && s.Status.Step == nil && !templateRejected(s):
		return phaseNoPods
	case leftovers(s):
		return phaseLeftovers
	}
	return state.PhaseReleasing
}

// leftovers reports whether objects of an earlier release are still in place.
func leftovers(s *state.Snapshot) bool {
	return !s.Begun() && (s.StableService.Presence == kit.Present && s.StableService.Revision != s.Status.Stable.Revision || s.Split.Deleting)
}

// Hindrance finds what holds a release up.
func (Target) Hindrance(s *state.Snapshot) state.Phase {
	taken := s.CanaryService.Presence == kit.Present && s.CanaryService.Revision != s.Revision && !s.Begun()
	if s.CanaryPods(canaryOf(s)) || taken && !routing.Stopped(s) {
		return phaseReplacing
	}
	return state.PhaseReleasing
}

// Unprepared finds what holds its traffic up.
func (Target) Unprepared(s *state.Snapshot) state.Phase {
	switch {
	case s.Workload.Replicas == 0 && !s.Decided(v1alpha1.ActionPromote):
		return phaseSuspended
	case !s.ByReplicas && (s.Split.Presence != kit.Present || s.Split.Deleting) && (s.Status.Step.ProgrammedAt != nil || s.Split.Presence != kit.Absent):
		return phaseSplitDeleted
	case !paused(s, true):
		return phasePausing
	case !prepared(s):
		return phasePreparing
	}
	return state.PhaseReleasing
}

// Act acts for a phase, and reports whether that makes another one.
func (Target) Act(d *state.Draft, p state.Phase) (another bool) {
	switch p {
	case phaseLeavingRouter:
		leaveRouter(d)
	case phaseAdopting:
		return adopt(d)
	case phaseFirst:
		return firstVersion(d)
	case phaseSettled:
		settle(d)
	case phaseNoPods:
		return withoutPods(d)
	case phaseLeftovers:
		replaceStale(d)
		routing.CleanUp(d)
	case phaseFallback:
		return fallBack(d, fallback(&d.Snapshot))
	case phaseReclaiming, phaseUnpaused, phaseUnguarded, phaseStale:
		return actOnDrift(d, p)
	case state.PhaseRestoring:
		return restore(d)
	case state.PhaseRolledBack:
		rollBack(d)
	default:
		return actInRelease(d, p)
	}
	return false
}

// actInRelease acts for the phases of a release, and for those without a stable version.
func actInRelease(d *state.Draft, p state.Phase) (another bool) {
	switch p {
	case phaseStableLost, phaseLastCopy:
		stall(d, p)
	case state.PhasePromoting:
		return promote(d)
	case state.PhaseWithdrawn:
		routing.Tidy(d)
		routing.StopTraffic(d)
	case phaseReplacing:
		return replace(d)
	case phaseSuspended:
		suspend(d)
	case phaseSplitDeleted:
		return remakeSplit(d)
	case phasePausing:
		routing.Tidy(d)
		pause(d, true)
		return routing.OrTooLate(d)
	case phasePreparing:
		return prepare(d)
	}
	return false
}

// leavesRouter reports whether the split of a release that began with another router
// than none is still there. Nothing would move its weights any more, so all pods stay
// until the traffic is off it.
func leavesRouter(s *state.Snapshot) bool {
	return s.ByReplicas && s.Split.Presence == kit.Present && s.Split.Ours
}

func leaveRouter(d *state.Draft) {
	d.Wait(v1alpha1.ReasonCleaningUp, "The router has changed to none: returning the traffic to the Service %q first%s.", d.Rollout.Spec.Service, d.Split.Leaving())
	routing.RemoveSplit(d)
}

// replace removes the canary of an earlier template, until none is left and the Service
// of the canary is free for the new revision.
func replace(d *state.Draft) (another bool) {
	replaceStale(d)
	keep := canaryOf(&d.Snapshot)
	if d.CanaryPods(keep) {
		d.Wait(v1alpha1.ReasonSuperseded, "A newer template supersedes the canary: removing the old canary.")
	}
	if removeCanaries(d, keep) {
		routing.StopTraffic(d) // before the Service of the canary means the new one
	}
	return routing.OrTooLate(d)
}

// suspend keeps a release of a workload that was scaled to zero: no pod
// answers, and there is nothing to compare. It begins with its first step again when there
// are pods.
func suspend(d *state.Draft) {
	d.State.Progress = true
	routing.Tidy(d)
	if s := d.Status.Step; s.Index != 0 || s.PreparedAt != nil || s.ProgrammedAt != nil {
		d.EnterStep(0)
	}
	if !routing.StopTraffic(d) {
		return
	}
	if rs := canaryOf(&d.Snapshot); rs != nil && rs.Replicas > 0 {
		d.Do(kit.ScaleReplicaSet{Object: rs.Object, Replicas: 0, Desired: 0})
	}
	d.Say(v1alpha1.ReasonWaitingForPods, "The Deployment is scaled to zero: the release of revision %s begins with its first step when there are pods again.", d.Revision)
}

// remakeSplit notices that another actor deleted the split: the step begins again when it is
// back.
func remakeSplit(d *state.Draft) (another bool) {
	routing.Tidy(d)
	if s := d.Status.Step; s.ProgrammedAt != nil {
		d.EnterStep(int(s.Index))
		if d.Split.Presence == kit.Absent {
			return true
		}
	}
	d.Wait(v1alpha1.ReasonWaitingForTraffic, "Step %s: another actor deleted the TrafficSplit; Serin makes it again once it is gone.", d.Status.Step.Summary)
	return routing.OrTooLate(d)
}

// paused reports whether the Deployment is paused, or is not.
func paused(s *state.Snapshot, want bool) bool {
	w := s.Workload
	if s.Rival != "" && w.ManagedBy != s.Rollout.Name {
		return true // the older Rollout holds it, or not
	}
	return w.Paused == want && w.ManagedBy == s.Rollout.Name && (!want || w.HeldBySerin)
}

// pause pauses the Deployment or not.
func pause(d *state.Draft, want bool) {
	d.Do(state.SetPaused{Paused: want})
	switch {
	case d.State.Reason != "":
	case want:
		d.Wait(v1alpha1.ReasonPreparing, "Waiting until the Deployment is paused on its new template.")
	default:
		d.Wait(v1alpha1.ReasonCleaningUp, "Waiting until the Deployment is no longer paused.")
	}
}

// prepared reports whether the traffic is under control, so that there may be a canary.
func prepared(s *state.Snapshot) bool {
	if s.ByReplicas {
		return true
	}
	if s.Split.Presence == kit.Absent || !selects(s.StableService, s.Status.Stable.Revision) || !selects(s.CanaryService, s.Revision) {
		return false
	}
	promoting := s.Decided(v1alpha1.ActionPromote) && s.Split.Observed >= 0
	running := s.Canary != nil && (s.Canary.Replicas > 0 || s.Canary.Existing > 0 || promoting)
	return running || s.Routed(strategy.Route{}) && !mixed(s)
}

func selects(b kit.Backend, revision string) bool {
	return b.Presence == kit.Present && b.Revision == revision
}

// prepare puts the traffic under control while there is no canary yet.
func prepare(d *state.Draft) (another bool) {
	routing.Upkeep(d)
	ready := selects(d.StableService, d.Status.Stable.Revision) && selects(d.CanaryService, d.Revision)
	if ready || d.Split.Presence == kit.Absent {
		d.Request(strategy.Route{})
	}
	if s := d.Status.Step; s.PreparedAt == nil {
		s.PreparedAt = new(d.Micro()) // the router has no more time than pods have
	}
	routing.NoteLoss(d)
	if d.Routed(strategy.Route{}) && mixed(&d.Snapshot) {
		d.Wait(v1alpha1.ReasonPreparing, "Narrowing the preview Service %q to the stable version before the canary exists.", d.Preview.Name)
		return routing.OrTooLate(d)
	}
	d.Wait(v1alpha1.ReasonPreparing, "Taking control of the traffic of the Service %q before the canary exists: %s.", d.Rollout.Spec.Service, routing.TrafficWait(&d.Snapshot, strategy.Route{}))
	return routing.OrTooLate(d)
}
