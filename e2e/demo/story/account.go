// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
)

// Account is what was seen since the story began.
type Account struct {
	// StartedAt is the time of the first snapshot, Now that of the latest.
	StartedAt, Now time.Time
	// Releases are the versions that were applied, oldest first.
	Releases []*Release
	// Last is the latest snapshot.
	Last Snapshot
	// LoadRestarts counts how often the load generator began to count again.
	LoadRestarts int
}

// Release is what was seen of one version.
type Release struct {
	// Version that was applied, at AppliedAt.
	Version   string
	AppliedAt time.Time
	// Revision is the pod-template-hash of its pods, "" until there is one.
	Revision string
	// TrafficAt is when it was first seen with a weight above 0 in effect.
	TrafficAt time.Time
	// OutOfTrafficAt is when its weight was first seen at 0 again after that.
	OutOfTrafficAt time.Time
	// Outcome is how it ended and SettledAt when nothing was left to do.
	Outcome   *serinv1alpha1.HistoryEntry
	SettledAt time.Time
	// Weights are the weights in effect, in the order seen, without repetitions.
	Weights []int32
	// Analysis is the latest evidence.
	Analysis *serinv1alpha1.AnalysisStatus
	// Pods are all pods of the version that were ever seen.
	Pods map[types.UID]*PodRecord
}

// PodRecord is what was seen of one pod.
type PodRecord struct {
	Name string
	// Canary tells that it was ready while the Rollout controlled it; Adopted that
	// the Deployment controlled it.
	Canary, Adopted bool
}

// Begin notes that a version is applied now.
func (a *Account) Begin(version string, now time.Time) {
	a.Releases = append(a.Releases, &Release{Version: version, AppliedAt: now, Pods: map[types.UID]*PodRecord{}})
}

// Settle notes that nothing is left to do for the latest version.
func (a *Account) Settle(now time.Time) {
	if r := a.current(); r != nil && r.SettledAt.IsZero() {
		r.SettledAt = now
	}
}

// Release returns what was seen of a version, nil when it was never applied.
func (a *Account) Release(version string) *Release {
	for _, r := range a.Releases {
		if r.Version == version {
			return r
		}
	}
	return nil
}

func (a *Account) current() *Release {
	if len(a.Releases) == 0 {
		return nil
	}
	return a.Releases[len(a.Releases)-1]
}

// Add takes a snapshot into the account.
func (a *Account) Add(s Snapshot) {
	if a.StartedAt.IsZero() {
		a.StartedAt = s.Time
	}
	if s.Load == nil {
		s.Load = a.Last.Load
	}
	if before := a.Last.Load; before != nil && !before.StartedAt.IsZero() && !before.StartedAt.Equal(s.Load.StartedAt) {
		a.LoadRestarts++
	}
	a.Now, a.Last = s.Time, s
	for _, pod := range s.Pods {
		if r := a.Release(pod.Version); r != nil {
			r.addPod(pod)
		}
	}
	if r := a.current(); r != nil {
		r.addRollout(s)
	}
}

func (r *Release) addPod(pod Pod) {
	r.Revision = pod.Revision
	record := r.Pods[pod.UID]
	if record == nil {
		record = &PodRecord{Name: pod.Name}
		r.Pods[pod.UID] = record
	}
	record.Canary = record.Canary || pod.Owner == OwnerCanary && pod.Ready
	record.Adopted = record.Adopted || pod.Owner == OwnerDeployment
}

// addRollout takes the state of the release in progress.
func (r *Release) addRollout(s Snapshot) {
	r.Outcome = s.Outcome(r.Revision)
	if s.Rollout == nil || s.Rollout.Status.Canary == nil || s.Rollout.Status.Canary.Revision != r.Revision {
		return
	}
	if s.Rollout.Status.Analysis != nil {
		r.Analysis = s.Rollout.Status.Analysis
	}
	// The TrafficSplit knows it first: the status of the Rollout may be half a minute old, and
	// says of a short step only that it was passed. Of a version that is being promoted, it says
	// which weight it had when that was decided, also when the TrafficSplit has gone.
	if weight, known := s.liveWeight(); known {
		r.addWeight(weight, s.Time)
	} else if weight, d := s.Rollout.Status.Weight, s.Rollout.Status.Decision; weight != nil && weight.Observed != nil && (d == nil || d.Action != serinv1alpha1.ActionPromote) {
		r.addWeight(*weight.Observed, s.Time)
	}
}

func (r *Release) addWeight(weight int32, now time.Time) {
	if n := len(r.Weights); n == 0 || r.Weights[n-1] != weight {
		r.Weights = append(r.Weights, weight)
	}
	if weight > 0 && r.TrafficAt.IsZero() {
		r.TrafficAt = now
	}
	if weight == 0 && !r.TrafficAt.IsZero() && r.OutOfTrafficAt.IsZero() {
		r.OutOfTrafficAt = now
	}
}

// MaxWeight is the highest weight that the version had in effect.
func (r *Release) MaxWeight() int32 {
	if len(r.Weights) == 0 {
		return 0
	}
	return slices.Max(r.Weights)
}

// settledIn is how long the release took, 0 when it never ended.
func (r *Release) settledIn() time.Duration {
	if r.SettledAt.IsZero() {
		return 0
	}
	return r.SettledAt.Sub(r.AppliedAt)
}

// outOfTrafficIn is how long it took from being applied until no request went to
// the version any more, 0 when that was never seen.
func (r *Release) outOfTrafficIn() time.Duration {
	if r.OutOfTrafficAt.IsZero() {
		return 0
	}
	return r.OutOfTrafficAt.Sub(r.AppliedAt)
}
