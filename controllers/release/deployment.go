// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// deployment releases a Deployment: it is paused on its new template while Serin's
// ReplicaSet of that template is the canary, and adopts that ReplicaSet at the end.
//
//	phase          | holds when                                    | then
//	---------------+-----------------------------------------------+------------------------------
//	LeavingRouter  | the router is none, and a split is there      | the split goes
//	Adopting       | the canary was handed over                    | old pods go; it is stable
//	First          | no version is stable                          | the Deployment rolls out
//	(lost)         | stable's ReplicaSet was deleted               | see deployment_lost.go
//	(drifted)      | others changed the pods of a release          | see deployment_drift.go
//	Settled        | the template is the stable version            | clean up; ready
//	NoPods         | a new template, but no pods and no split      | it is stable without steps
//	Leftovers      | objects of an earlier release are in place    | clean up
//	Replacing      | a canary of an earlier template has pods      | its traffic, then its pods go
//	Suspended      | scaled to zero in the middle of a release     | no traffic; begin again later
//	SplitDeleted   | somebody deleted the split                    | made again; the step begins again
//	Pausing        | the Deployment is not paused                  | it is
//	Preparing      | Services and split are not in place           | they are made
type deployment struct{}

// The phases of a Deployment.
const (
	phaseLeavingRouter phase = "LeavingRouter"
	phaseAdopting      phase = "Adopting"
	phaseFirst         phase = "First"
	phaseFallback      phase = "Fallback"
	phaseStableLost    phase = "StableLost"
	phaseLastCopy      phase = "LastCopy"
	phaseReclaiming    phase = "Reclaiming"
	phaseUnpaused      phase = "Unpaused"
	phaseUnguarded     phase = "Unguarded"
	phaseStale         phase = "Stale"
	phaseSettled       phase = "Settled"
	phaseNoPods        phase = "NoPods"
	phaseLeftovers     phase = "Leftovers"
	phaseReplacing     phase = "Replacing"
	phaseSuspended     phase = "Suspended"
	phaseSplitDeleted  phase = "SplitDeleted"
	phasePausing       phase = "Pausing"
	phasePreparing     phase = "Preparing"
	phaseNothing       phase = "Nothing"
)

func (t deployment) observe(s *snapshot) facts {
	recognise(s)
	f := facts{
		revision: templateRevision(s), unfit: refuseDeployment(s), gone: workloadGone(s) || s.Service.Presence == kit.Absent,
		place: "the TrafficSplit", unconfirmed: s.Workload.Presence == kit.Absent, writer: splitWriter{}, maker: t,
	}
	if s.CanaryService.Presence == kit.Present {
		f.canaryEnd = s.CanaryService.Revision
	}
	if rs := canaryOf(s); rs != nil {
		f.revision, f.canary = rs.Revision, &canary{Replicas: rs.Replicas, Existing: rs.Existing, Available: rs.Available, Desired: rs.Desired, Failure: rs.Failure}
	}
	f.ungoverned = ungoverned(s, f.canary)
	return f
}

// ungoverned reports whether the router or the split is gone, and its weights with it:
// the Service spreads the requests over all pods by now, and nothing measures them.
func ungoverned(s *snapshot, c *canary) bool {
	unserved := s.Split.Unserved && !s.RouterOffered
	return unserved || s.Split.Presence == kit.Absent && !s.byReplicas && c != nil && c.Replicas+c.Existing > 0
}

// canaryOf is the ReplicaSet of the workload's template that Serin controls.
func canaryOf(s *snapshot) *kit.ReplicaSet {
	return s.replicaSet(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerSerin && r.Current && !r.Deleting })
}

// templateRevision names the workload's template without a canary: by the ReplicaSet that
// it had before, else by the name that a new one gets.
func templateRevision(s *snapshot) string {
	if previous := previousOf(s); previous != nil {
		return previous.Revision
	}
	return s.Workload.Revision
}

// previousOf is an old ReplicaSet of the Deployment with the present template, when
// the template was set back to an earlier version. The Deployment controller
// would prefer it to any other ReplicaSet of that template, so it must become
// the canary.
func previousOf(s *snapshot) *kit.ReplicaSet {
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerDeployment && r.Current && r.Gone() && !r.Deleting
	})
}

func (deployment) assess(s *snapshot) phase {
	stable := s.stable()
	switch {
	case s.refusal == nil && leavesRouter(s):
		return phaseLeavingRouter
	case handedOver(s) != nil:
		return phaseAdopting
	case stable == nil:
		return assessLost(s)
	}
	if p := assessDrift(s); p != phaseReleasing {
		return p
	}
	return assessSettled(s, stable)
}

// assessSettled finds out whether there is anything to release.
func assessSettled(s *snapshot, stable *kit.ReplicaSet) phase {
	switch {
	case stable.Current:
		return phaseSettled
	case s.refusal != nil:
		return phaseReleasing
	case s.Workload.Replicas == 0 && s.Split.Presence == kit.Absent && s.status.Step == nil && !templateRejected(s):
		return phaseNoPods
	case leftovers(s):
		return phaseLeftovers
	}
	return phaseReleasing
}

// leftovers reports whether objects of an earlier release are still in place.
func leftovers(s *snapshot) bool {
	return !s.begun() && (s.StableService.Presence == kit.Present && s.StableService.Revision != s.status.Stable.Revision || s.Split.Deleting)
}

func (deployment) hindrance(s *snapshot) phase {
	taken := s.CanaryService.Presence == kit.Present && s.CanaryService.Revision != s.revision && !s.begun()
	if s.canaryPods(canaryOf(s)) || taken && !stopped(s) {
		return phaseReplacing
	}
	return phaseReleasing
}

func (deployment) unprepared(s *snapshot) phase {
	switch {
	case s.Workload.Replicas == 0 && !s.decided(v1alpha1.ActionPromote):
		return phaseSuspended
	case !s.byReplicas && (s.Split.Presence != kit.Present || s.Split.Deleting) && (s.status.Step.ProgrammedAt != nil || s.Split.Presence != kit.Absent):
		return phaseSplitDeleted
	case !paused(s, true):
		return phasePausing
	case !prepared(s):
		return phasePreparing
	}
	return phaseReleasing
}

func (deployment) act(d *draft, p phase) (another bool) {
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
		yield(d)
		cleanUp(d)
	case phaseFallback:
		return fallBack(d, fallback(&d.snapshot))
	case phaseReclaiming, phaseUnpaused, phaseUnguarded, phaseStale:
		return actOnDrift(d, p)
	case phaseRestoring:
		return restore(d)
	case phaseRolledBack:
		rollBack(d)
	default:
		return actInRelease(d, p)
	}
	return false
}

// actInRelease acts for the phases of a release, and for those without a stable version.
func actInRelease(d *draft, p phase) (another bool) {
	switch p {
	case phaseStableLost, phaseLastCopy:
		stall(d, p)
	case phasePromoting:
		return promoteReplicaSet(d)
	case phaseWithdrawn:
		tidy(d)
		stopTraffic(d)
	case phaseReplacing:
		return replace(d)
	case phaseSuspended:
		suspend(d)
	case phaseSplitDeleted:
		return remakeSplit(d)
	case phasePausing:
		tidy(d)
		pause(d, true)
		return orTooLate(d)
	case phasePreparing:
		return prepare(d)
	}
	return false
}

// leavesRouter reports whether the split of a release that began with another router
// than none is still there. Nobody would move its weights any more, so all pods stay
// until the traffic is off it.
func leavesRouter(s *snapshot) bool {
	return s.RouterName == v1alpha1.RouterNone && s.Split.Presence == kit.Present && s.Split.Ours
}

func leaveRouter(d *draft) {
	d.Wait(v1alpha1.ReasonCleaningUp, "The router is none by now: returning the traffic to the Service %q first.", d.Rollout.Spec.Service)
	removeSplit(d)
}

// replace takes out the canary of an earlier template, until none is left and the Service
// of the canary is free for the new revision.
func replace(d *draft) (another bool) {
	yield(d)
	keep := canaryOf(&d.snapshot)
	if d.canaryPods(keep) {
		d.Wait(v1alpha1.ReasonSuperseded, "A newer template supersedes the canary: removing the old canary.")
	}
	if removeCanaries(d, keep) {
		stopTraffic(d) // before the Service of the canary means the new one
	}
	return orTooLate(d)
}

// suspend keeps a release of a workload that was scaled to zero: there is nobody
// to answer and nothing to compare. It begins with its first step again when there
// are pods.
func suspend(d *draft) {
	d.State.Progress = true
	tidy(d)
	if s := d.status.Step; s.Index != 0 || s.PreparedAt != nil || s.ProgrammedAt != nil {
		d.enterStep(0)
	}
	if !stopTraffic(d) {
		return
	}
	if rs := canaryOf(&d.snapshot); rs != nil && rs.Replicas > 0 {
		d.Do(kit.ScaleReplicaSet{Object: rs.Object, Replicas: 0, Desired: 0})
	}
	d.Say(v1alpha1.ReasonWaitingForPods, "The Deployment is scaled to zero: the release of revision %s begins with its first step when there are pods again.", d.revision)
}

// remakeSplit notices that somebody deleted the split: the step begins again when it is
// back.
func remakeSplit(d *draft) (another bool) {
	tidy(d)
	if s := d.status.Step; s.ProgrammedAt != nil {
		d.enterStep(int(s.Index))
		if d.Split.Presence == kit.Absent {
			return true
		}
	}
	d.Wait(v1alpha1.ReasonWaitingForTraffic, "Step %s: another actor deleted the TrafficSplit; it is made again when it is gone.", d.status.Step.Summary)
	return orTooLate(d)
}

// paused reports whether the Deployment is paused, or is not.
func paused(s *snapshot, want bool) bool {
	w := s.Workload
	if s.Rival != "" && w.ManagedBy != s.Rollout.Name {
		return true // the older Rollout holds it, or not
	}
	return w.Paused == want && w.ManagedBy == s.Rollout.Name && (!want || w.HeldBySerin)
}

// pause pauses the Deployment or not.
func pause(d *draft, want bool) {
	d.Do(SetPaused{Paused: want})
	switch {
	case d.State.Reason != "":
	case want:
		d.Wait(v1alpha1.ReasonPreparing, "Waiting until the Deployment is paused on its new template.")
	default:
		d.Wait(v1alpha1.ReasonCleaningUp, "Waiting until the Deployment is not paused any more.")
	}
}

// prepared reports whether the traffic is under control, so that there may be a canary.
func prepared(s *snapshot) bool {
	if s.byReplicas {
		return true
	}
	if s.Split.Presence == kit.Absent || !selects(s.StableService, s.status.Stable.Revision) || !selects(s.CanaryService, s.revision) {
		return false
	}
	promoting := s.decided(v1alpha1.ActionPromote) && s.Split.Observed >= 0
	running := s.canary != nil && (s.canary.Replicas > 0 || s.canary.Existing > 0 || promoting)
	return running || s.routed(Route{})
}

func selects(b kit.Backend, revision string) bool {
	return b.Presence == kit.Present && b.Revision == revision
}

// prepare puts the traffic under control while there is no canary yet.
func prepare(d *draft) (another bool) {
	upkeep(d)
	ready := selects(d.StableService, d.status.Stable.Revision) && selects(d.CanaryService, d.revision)
	if ready || d.Split.Presence == kit.Absent {
		d.request(Route{})
	}
	if s := d.status.Step; s.PreparedAt == nil {
		s.PreparedAt = new(d.micro()) // the router has no more time than anybody else
	}
	noteLoss(d)
	d.Wait(v1alpha1.ReasonPreparing, "Putting the traffic of the Service %q under control before the canary exists: %s.", d.Rollout.Spec.Service, trafficWait(&d.snapshot, Route{}))
	return orTooLate(d)
}

// workloadGone reports whether there is no Deployment, and so nothing to go back to.
func workloadGone(s *snapshot) bool { return s.Workload.Presence == kit.Absent || s.Workload.Deleting }

// refuseDeployment says why a Deployment can't be released.
func refuseDeployment(s *snapshot) *kit.Statement {
	if workloadGone(s) {
		return refusal(v1alpha1.ReasonWorkloadNotFound, "spec.workloadRef: the Deployment %q does not exist in this namespace; create it or correct the name.", s.Rollout.Spec.WorkloadRef.Name)
	}
	for _, why := range []*kit.Statement{
		serviceMissing(s), serviceTaken(s, v1alpha1.RoleStable, &s.StableService),
		serviceTaken(s, v1alpha1.RoleCanary, &s.CanaryService), splitTaken(s),
	} {
		if why != nil {
			return why
		}
	}
	return nil
}
