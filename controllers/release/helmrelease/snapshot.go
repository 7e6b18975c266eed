// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

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

func (s *snapshot) ended() bool { return s.status.Decision != nil && s.status.Decision.EndedAt != nil }

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
	for i := range w.ReplicaSets {
		if match(&w.ReplicaSets[i]) {
			return &w.ReplicaSets[i]
		}
	}
	return nil
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
