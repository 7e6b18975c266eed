// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"testing"
	"time"

	splitv1alpha4 "github.com/serin-dev/serin/api/split/v1alpha4"
	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
)

// The status of a Rollout may never say 0: what a rollback waits for is written when it lasts.
func TestAVersionIsOutOfTrafficWhenTheTrafficSplitSaysSo(t *testing.T) {
	applied := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &Release{Revision: "bad", AppliedAt: applied}
	at := func(seconds int, live int32) {
		ro := &serinv1alpha1.Rollout{}
		ro.Status.Canary = &serinv1alpha1.VersionStatus{Revision: "bad"}
		ro.Status.Weight = &serinv1alpha1.WeightStatus{Observed: new(int32(10))}
		split := &splitv1alpha4.TrafficSplit{}
		split.Status.Backends = []splitv1alpha4.BackendStatus{{Service: "website-stable", Weight: 100 - live}, {Service: "website-canary", Weight: live}}
		r.addRollout(Snapshot{Time: applied.Add(time.Duration(seconds) * time.Second), Rollout: ro, Split: split})
	}
	at(10, 10)
	if !r.OutOfTrafficAt.IsZero() {
		t.Error("out of traffic at a weight of 10")
	}
	at(30, 0)
	at(40, 0)
	if got := r.outOfTrafficIn(); got != 30*time.Second || r.MaxWeight() != 10 {
		t.Errorf("out of traffic in %s, at most %d %%", got, r.MaxWeight())
	}
}

// The status of a Rollout has the weight of the decision until the release has ended.
func TestTheWeightOfAPromotedVersionDoesNotGoBackWhenTheTrafficSplitIsGone(t *testing.T) {
	r := &Release{Revision: "good"}
	ro := &serinv1alpha1.Rollout{}
	ro.Status.Canary = &serinv1alpha1.VersionStatus{Revision: "good"}
	ro.Status.Weight = &serinv1alpha1.WeightStatus{Observed: new(int32(50))}
	r.addRollout(Snapshot{Rollout: ro})
	ro.Status.Decision = &serinv1alpha1.Decision{Revision: "good", Action: serinv1alpha1.ActionPromote}
	split := &splitv1alpha4.TrafficSplit{}
	split.Status.Backends = []splitv1alpha4.BackendStatus{{Service: "website-stable"}, {Service: "website-canary", Weight: 100}}
	r.addRollout(Snapshot{Rollout: ro, Split: split})
	r.addRollout(Snapshot{Rollout: ro})
	if want := []int32{50, 100}; !slices.Equal(r.Weights, want) {
		t.Errorf("the weights are %v, want %v", r.Weights, want)
	}
}
