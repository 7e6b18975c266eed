// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Ends reports whether it is gone, or is not to stay.
func (c *Delegated) Ends() bool { return c.Presence != kit.Present || c.Decision != nil || c.Deleting }

// Over reports whether it has ended, so that no decision about it is left.
func (c *Delegated) Over() bool { return c.Decision.Over() }

// Observation is everything a decision is made from.
type Observation struct {
	// Now is the time of the observation.
	Now time.Time
	// Rollout as read, with the status of the last decision.
	Rollout *v1alpha1.Rollout
	// Unreadable names what could not be read, for users; "" when all was.
	Unreadable string
	// Rival is the older Rollout that claims the same workload or Service; "" if none.
	Rival string
	// RouterOffered is whether the operator offers the router that the spec names.
	RouterOffered bool
	// RouterName is that router.
	RouterName v1alpha1.RouterName
	// Unmatchable is why a TrafficSplit of this cluster can't be limited to some
	// requests; "" when it can.
	Unmatchable string
	// DrainTime is how long requests may still go to the Services of the versions after the
	// TrafficSplit is gone, because the router reads the TrafficSplit itself.
	DrainTime time.Duration
	// GuardInForce is whether an admission policy or webhook pauses a managed Deployment in
	// the write that changes its template.
	GuardInForce bool

	Workload    Workload
	ReplicaSets []kit.ReplicaSet
	Service     Service
	// StableService and CanaryService are the backend Services.
	StableService, CanaryService kit.Backend
	Split                        Split
	// Preview is the preview Service that the spec names, and StalePreviews are others that
	// still have a key of the Rollout's in their selector.
	Preview       Preview
	StalePreviews []kit.Object

	// Configuration is what the template says of its ConfigMaps and Secrets.
	Configuration Configuration

	// Pair is what is behind the two Services of spec.services.
	Pair Pair

	// Delegated is the CanaryRelease of spec.workloadRef. What was requested of it and what
	// is live is in Split.
	Delegated Delegated

	// Metrics are those that the user named in addition to the traffic.
	Metrics strategy.Metrics
	// Windows are the measurements since the last one judged, oldest first.
	Windows []analysis.Window
	// Values are numbers of the user that became known while no traffic could be
	// measured, oldest first.
	Values []analysis.KnownValue
	// DataProblem says why measurements are missing; "" when they are not.
	DataProblem string

	// DistributionProblem says why Services can't have the traffic distribution that
	// the Rollout wants; "" when they can.
	DistributionProblem string

	// ProxyPodsProblem says why proxies can't run as the Rollout wants, beginning with the
	// field; "" when they can.
	ProxyPodsProblem string

	// Freezes are the operator's that concern the Rollout's namespace.
	Freezes []v1alpha1.Freeze
	// Answers are what became of questions and notifications, by their id.
	Answers map[string]Answer
	// Stored is the status that the API server has, where that of the Rollout is newer since
	// its write was put off; nil when they are the same.
	Stored *v1alpha1.RolloutStatus
	// ReportedAt is when the status was written last; zero when that is not known.
	ReportedAt time.Time
	// LeaveOut is whether the next write of figures is left out, so that the recording can be
	// stored in its place.
	LeaveOut bool
	// Jump is the last time in which the operator could not look.
	Jump Jump
	// OutageAt is when the operator last saw an Outage in this release; zero for never. A
	// restart forgets it.
	OutageAt time.Time
	// CanaryExcused is whether the canary may have no available pod by no fault of its own:
	// containers were ready when their node reported last, or its pods were taken away and
	// others start in their place.
	CanaryExcused bool
}

// Answer is what an endpoint made of a question or a notification.
type Answer struct {
	// Tried is whether it was called or notified since the operator started.
	Tried bool
	// Final is whether it will not be called again.
	Final bool
	// Taken is whether it agreed.
	Taken bool
	// Message says what the last attempt gave.
	Message string
}

// Workload is the Deployment.
type Workload struct {
	Presence kit.Presence
	UID      types.UID
	// Deleting is whether it has a deletion timestamp.
	Deleting bool
	// Replicas wanted by the user or autoscaler.
	Replicas int32
	Paused   bool
	// ManagedBy is the Rollout in its annotation.
	ManagedBy string
	// Settled is whether its controller has seen its newest generation and has all
	// replicas updated and available.
	Settled bool
	// Unseen is whether its controller has not seen its newest generation yet, and may not control
	// all of its ReplicaSets.
	Unseen bool
	// Available pods, of all revisions.
	Available int32
	// Revision is the name that the canary of its present template gets.
	Revision string
	// HeldBySerin is whether spec.paused is a field that Serin applied.
	HeldBySerin bool
}

// Pair is what is behind two Services that users keep.
type Pair struct {
	// Missing names a Service that does not exist, stable's before the canary's; ""
	// when both do.
	Missing string
	// StableRevision and CanaryRevision distinguish the newest pods behind a Service from
	// other ones; "" where they are scaled to zero, which is no other version.
	StableRevision, CanaryRevision string
	// StableReady and CanaryReady are their pods that can answer.
	StableReady, CanaryReady int32
}

// Delegated is a CanaryRelease that the Rollout names.
type Delegated struct {
	Presence kit.Presence
	// Deleting is whether it has a deletion timestamp.
	Deleting bool
	// Rollout that it lets decide; "" for none.
	Rollout string
	// Revision names it and its content; Stable names the Helm revision that is stable.
	Revision, Stable string
	// Ready are the canary's pods that can answer; 0 when one of its workloads has none.
	Ready int32
	// Replicas are all of them.
	Replicas int32
	// Unserved is whether no operator serves CanaryReleases here.
	Unserved bool
	// Transition is how a Rollout has it end, with the present content.
	Transition v1alpha1.CanaryTransition
	// Held is whether a Rollout has written anything.
	Held bool
	// Decision is how it ends; nil while that is open.
	Decision *v1alpha1.CanaryDecision
	// Unshared is whether it shares the traffic of no Service.
	Unshared bool
	// Problem says why nothing could be measured; "" when it can.
	Problem string
	// Uneven is whether a port of the measured Service keeps another weight than the
	// Rollout's, so that its requests are not shared by one weight.
	Uneven bool
	// Message is its own account of its state.
	Message string
}

// Service is the root Service.
type Service struct {
	Presence kit.Presence
	// Problem says why it can't be split; "" when it can.
	Problem string
}

// PreviewService is the name of the preview Service that a spec names; "" for none.
func PreviewService(spec *v1alpha1.RolloutSpec) string {
	if b := spec.Strategy.BlueGreen; b != nil {
		return b.PreviewService
	}
	return ""
}

// Preview is a Service of the user that leads to the new version while it is tried.
type Preview struct {
	kit.Object
	Presence kit.Presence
	// Problem says why it can't be one; "" when it can.
	Problem string
	// Revision that it leads to by a key of the Rollout's; "" where it selects what its owner
	// declares. Since is when that was requested.
	Revision string
	Since    time.Time
	// Confirmed is whether its endpoints are those of the canary's Service, of which there
	// are some.
	Confirmed bool
}

// Split is the TrafficSplit.
type Split struct {
	kit.Split
	// Inherited is whether an earlier Rollout of the same two Services made it, whose record was lost.
	Inherited bool
	// Requested is what its spec sends to the canary; the weight is -1 when the spec
	// is not what Serin writes.
	Requested strategy.Route
	// Observed is the canary's weight that the router reported programmed last, or -1.
	Observed int32
	// Unresolved is what the split refers to that does not exist; "" when all does.
	Unresolved string
	// GoneSince is since when the operator has seen none of the Rollout's; zero while there
	// is one. A restart forgets it, and sees the first time anew.
	GoneSince time.Time
}

// Answering is how many pods can answer behind the canary's Service; those of no
// revision belong to no version.
func (p Pair) Answering() int32 {
	if p.CanaryRevision == "" {
		return 0
	}
	return p.CanaryReady
}
