// SPDX-License-Identifier: Apache-2.0

package servicepair

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Reconstruct is the record of a Rollout that is gone, as far as restoring needs it: the
// canary's Service is stable if it has all traffic, since the other may have no pods. Where no router
// has reported what it has, what it was to have counts.
func Reconstruct(o *state.Observation) v1alpha1.RolloutStatus {
	var record v1alpha1.RolloutStatus
	live := o.Split.Observed < 0 || o.Split.Observed == strategy.FullWeight
	if live && o.Split.Requested.Equal(strategy.Route{Weight: strategy.FullWeight}) {
		record.Stable = &v1alpha1.VersionStatus{Service: o.Rollout.Spec.Services.Canary}
	}
	return record
}
