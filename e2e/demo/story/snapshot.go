// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	splitv1alpha4 "github.com/serin-dev/serin/api/split/v1alpha4"
	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

// Snapshot is the state of the demo at one moment. Its parts are shared: nobody
// may change them.
type Snapshot struct {
	// Time at which the snapshot was taken.
	Time time.Time
	// Rollout is nil while there is none.
	Rollout *serinv1alpha1.Rollout
	// Split is nil while no TrafficSplit is in place.
	Split *splitv1alpha4.TrafficSplit
	// Pods are the website's own pods, without the proxies.
	Pods []Pod
	// Load is the latest report of the load generator, nil before the first.
	Load *generator.Report
	// Problem says what could not be read, "" when everything could.
	Problem string
}

// Pod is one pod of the website.
type Pod struct {
	Name string
	UID  types.UID
	// Version is the value of its VERSION variable.
	Version string
	// Revision is its pod-template-hash.
	Revision string
	// Ready tells whether it gets traffic; Going whether it is being deleted.
	Ready, Going bool
	// Owner controls its ReplicaSet.
	Owner Owner
}

// Owner is the kind of object that controls the ReplicaSet of a pod. A canary's
// names the root Service, so that the Deployment leaves it alone.
type Owner string

// Who can control a ReplicaSet of the website.
const (
	OwnerUnknown    Owner = ""
	OwnerCanary     Owner = "Service"
	OwnerDeployment Owner = "Deployment"
)

// Ready is the condition of the Rollout that explains its state. It is the zero
// condition while there is none for the present generation.
func (s Snapshot) Ready() metav1.Condition {
	if s.Rollout == nil || s.Rollout.Status.ObservedGeneration != s.Rollout.Generation {
		return metav1.Condition{}
	}
	if c := meta.FindStatusCondition(s.Rollout.Status.Conditions, serinv1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Outcome is how the release of a revision ended, nil while it has not.
func (s Snapshot) Outcome(revision string) *serinv1alpha1.HistoryEntry {
	if s.Rollout == nil || revision == "" {
		return nil
	}
	for i := range s.Rollout.Status.History {
		if entry := &s.Rollout.Status.History[i]; entry.Revision == revision {
			return entry
		}
	}
	return nil
}

// InPath tells whether something of Serin is still in the path of the traffic.
func (s Snapshot) InPath() bool { return s.Split != nil }

// liveWeight is the canary's weight that the TrafficSplit says is live.
func (s Snapshot) liveWeight() (weight int32, known bool) {
	if s.Split == nil {
		return 0, false
	}
	i := slices.IndexFunc(s.Split.Status.Backends, func(b splitv1alpha4.BackendStatus) bool { return strings.HasSuffix(b.Service, "-canary") })
	if i < 0 {
		return 0, false
	}
	return s.Split.Status.Backends[i].Weight, true
}

// ready counts the pods of a version that get traffic.
func (s Snapshot) ready(version string) int {
	n := 0
	for _, pod := range s.Pods {
		if pod.Version == version && pod.Ready && !pod.Going {
			n++
		}
	}
	return n
}

// only tells whether every pod of the website that is not being deleted runs
// the version, and at least one does.
func (s Snapshot) only(version string) bool {
	n := 0
	for _, pod := range s.Pods {
		if pod.Version != version && !pod.Going {
			return false
		}
		if pod.Version == version {
			n++
		}
	}
	return n > 0
}

// load returns the latest report, all zero before the first.
func (s Snapshot) load() generator.Report {
	if s.Load == nil {
		return generator.Report{}
	}
	return *s.Load
}
