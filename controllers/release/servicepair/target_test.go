// SPDX-License-Identifier: Apache-2.0

package servicepair

import (
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

func TestOneReadyPodBehindTheCanarysServiceCanAnswer(t *testing.T) {
	for ready, want := range map[int32]bool{0: false, 1: true, 2: true} {
		s := state.Snapshot{Observation: state.Observation{Rollout: &v1alpha1.Rollout{}, Pair: state.Pair{CanaryRevision: "v2", CanaryReady: ready}}}
		s.Rollout.Spec.Services = &v1alpha1.ServicePair{Stable: "web-v1", Canary: "web-v2"}
		s.Facts = Target{}.Observe(&s)
		if got := s.Ready(1); got != want {
			t.Errorf("with %d ready pods: %v", ready, got)
		}
	}
}
