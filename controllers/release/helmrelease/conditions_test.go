// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

func ownVersion(name string, available int32) kit.ReplicaSet {
	return kit.ReplicaSet{Object: kit.Object{Name: name}, Owner: kit.OwnerDeployment, Revision: name, Available: available}
}

func TestAReplicaSetThatIsBeingDeletedIsNotStable(t *testing.T) {
	w := &Workload{Name: "web", ReplicaSets: []kit.ReplicaSet{ownVersion("old", 4), ownVersion("left", 1)}}
	s := &snapshot{}
	if got := s.stable(w); got.Name != "old" {
		t.Errorf("stable is %s", got.Name)
	}
	w.ReplicaSets[0].Deleting = true
	if got := s.stable(w); got.Name != "left" {
		t.Errorf("stable is %s, which is being deleted", got.Name)
	}
}

func TestRequestsDoNotPassASplitThatIsNotServed(t *testing.T) {
	s := &Service{Presence: kit.Present, Split: Split{Split: kit.Split{Presence: kit.Present, Ours: true}}}
	if !s.led() {
		t.Error("requests pass no split that is served")
	}
	s.Split.Unserved = true
	if s.led() {
		t.Error("requests pass a split that is not served")
	}
}

func TestOnlyADeploymentOfAFailedUpgradeStaysPaused(t *testing.T) {
	w := &Workload{Name: "web", Presence: kit.Present, Paused: true, Held: true, ReplicaSets: []kit.ReplicaSet{ownVersion("old", 4)}}
	s := &snapshot{Observation: Observation{
		CanaryRelease: &v1alpha1.CanaryRelease{}, Release: Release{Presence: kit.Present, Ours: true, Newest: 5, Deployed: 4},
	}}
	if !unproven(s, w) {
		t.Error("a Deployment whose pods would be those of a failed upgrade is released")
	}
	w.ReplicaSets[0].Current = true
	if unproven(s, w) {
		t.Error("a Deployment of the deployed revision stays paused")
	}
}

func TestWhatHelmHasDeployedIsAdoptedEvenWhenItIsDeleted(t *testing.T) {
	s := &snapshot{Observation: Observation{
		CanaryRelease: &v1alpha1.CanaryRelease{}, Release: Release{Presence: kit.Present, Ours: true, Newest: 5, Deployed: 5},
	}}
	s.CanaryRelease.DeletionTimestamp = &metav1.Time{}
	s.CanaryRelease.DeletionTimestamp.Time = s.Now.AddDate(1, 0, 0)
	if e := conclusion(s); e == nil || e.transition != v1alpha1.CanaryTransitionAdopted {
		t.Errorf("it ends as %+v", e)
	}
}
