// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// Observation is everything a decision is made from.
type Observation struct {
	// Now is the time of the observation.
	Now time.Time
	// CanaryRelease as read, with the status of the last decision.
	CanaryRelease *v1alpha1.CanaryRelease
	// Unreadable names what of the cluster could not be read; "" when all was.
	Unreadable string
	// Doomed is whether the namespace is being deleted: what is in it goes without Serin, in any order.
	Doomed bool
	// Rival is the older CanaryRelease of the same Helm release; "" if none.
	Rival string

	Release  Release
	Proposal Proposal
	// UpgradeFailure is why the last upgrade failed, since the operator started, and
	// UpgradeFailedAt when; "" when none did.
	UpgradeFailure  string
	UpgradeFailedAt time.Time
	// UpgradeWaits is what comes first, since Helm was not called for the upgrade yet; "" when
	// nothing does.
	UpgradeWaits string
	// UpgradeTurn is whether it can be called for by now.
	UpgradeTurn bool

	// ReportedAt is when this operator last wrote the status; zero if it did not yet.
	ReportedAt time.Time

	// Workloads are the Deployments whose pods would change, those that have a canary, and
	// those on record.
	Workloads []Workload
	// Services are those that select pods of a canary, and those that have a split or
	// backends of this CanaryRelease.
	Services []Service
	// Copies are those that the proposal wants, and those on record.
	Copies []Copy
}

// Release is the Helm release.
type Release struct {
	// Presence is Unknown when Helm's records could not be read, and Absent when there is
	// none.
	Presence kit.Presence
	// Problem says why they could not be read.
	Problem string
	// Newest and Deployed revision; 0 for none.
	Newest, Deployed int32
	// Status of the newest, in Helm's words.
	Status string
	// Ours is whether this CanaryRelease's adoption made the newest revision.
	Ours bool
}

// Proposal is what the release would be.
type Proposal struct {
	// Known is whether it was made.
	Known bool
	// Problem says why it was not. Invalid is whether the user has to change something.
	Problem string
	Invalid bool
	// Digest names its content.
	Digest string
	// Later is what only an adoption changes, and Refused why no canary can be made.
	Later, Refused []string
}

// Workload is a Deployment of the release, with its canary.
type Workload struct {
	Name     string
	Presence kit.Presence
	// Deleting is whether it has a deletion timestamp.
	Deleting bool
	// Candidate is whether the proposal changes its pods. Revision then names them, and
	// Rolls is whether they read copies.
	Candidate bool
	Revision  string
	Rolls     bool
	// Replicas is spec.replicas.
	Replicas int32
	// Paused is spec.paused, and Held whether this controller applied that.
	Paused, Held bool
	// Settled is whether its controller has seen its newest generation and has all
	// replicas updated and available.
	Settled bool
	// Rollout that manages it; "" for none.
	Rollout string
	// ReplicaSets that it controls, and its canaries.
	ReplicaSets []kit.ReplicaSet
}

// Service is a root Service: one that clients call.
type Service struct {
	Name     string
	Presence kit.Presence
	// Workload whose pods it selects; "" when it selects none, or those of several.
	Workload string
	// Wanted is whether it selects pods of a candidate now.
	Wanted bool
	// Problem says why its traffic can't be shared; "" when it can.
	Problem string
	// Taken names another object that shares its traffic already, or that has a name
	// which is needed; "" if none.
	Taken string
	// Ports are its ports.
	Ports []Port

	Split Split
	// Stable and Canary are the Services of the versions.
	Stable, Canary kit.Backend
	// Traffic is what both answered lately; nil when that is not known.
	Traffic *v1alpha1.CanaryTraffic
}

// Port is one port of a root Service.
type Port struct {
	Number int32
	// Transport is TCP or UDP.
	Transport string
}

// Split is a TrafficSplit.
type Split struct {
	kit.Split
	// Requested are the canary's weights in its spec; nil when it is not what Serin writes.
	Requested []PortWeight
	// Proxies that report on it.
	Proxies int32
}

// Copy is an object that pods of a canary read.
type Copy struct {
	kit.Object
	Kind     string
	Presence kit.Presence
	// Ours is whether this CanaryRelease made it.
	Ours bool
	// Denied is the right that is lacking to read or delete it, with what to do about it;
	// "" when none is known to be.
	Denied string
	// Wanted is whether the proposal has it, and Current whether it is of that proposal.
	Wanted, Current bool
}

// snapshot is everything that is known about a CanaryRelease. Its methods change nothing.
type snapshot struct {
	Observation
	// status is the record: the observed one, with what was decided in this look.
	status v1alpha1.CanaryReleaseStatus
}

func (s *snapshot) deleting() bool { return !s.CanaryRelease.DeletionTimestamp.IsZero() }

func (s *snapshot) finalized() bool {
	return slices.Contains(s.CanaryRelease.Finalizers, v1alpha1.FinalizerCanaryRelease)
}

func (s *snapshot) adoptedRevision() int32 {
	if s.status.Release == nil {
		return 0
	}
	return s.status.Release.AdoptedRevision
}

// begun reports whether anything was made for the CanaryRelease.
func (s *snapshot) begun() bool { return s.status.Release != nil }

func (s *snapshot) ended() bool { return s.status.Decision.Over() }

func (s *snapshot) decided(t v1alpha1.CanaryTransition) bool {
	return s.status.Decision != nil && s.status.Decision.Transition == t
}

// micro is now as the status stores it.
func (s *snapshot) micro() metav1.MicroTime { return *s.microOf(s.Now) }

func (s *snapshot) microOf(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &m
}

// find returns the first ReplicaSet that matches, or nil.
func (w *Workload) find(match func(*kit.ReplicaSet) bool) *kit.ReplicaSet {
	return versions.Find(w.ReplicaSets, match)
}

// servicesOf are the Services of a workload.
func (s *snapshot) servicesOf(workload string) []*Service {
	var out []*Service
	for i := range s.Services {
		if s.Services[i].Workload == workload {
			out = append(out, &s.Services[i])
		}
	}
	return out
}
