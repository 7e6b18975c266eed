// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/deployment"
	"github.com/serin-dev/serin/controllers/release/servicepair"
	"github.com/serin-dev/serin/controllers/release/state"
)

// Reconstruct is the record of a Rollout that is gone while its objects are there, as after
// a user removed its finalizer: what can be seen of it in them. With it, Decide restores
// everything as when the Rollout is deleted.
func Reconstruct(o state.Observation) v1alpha1.RolloutStatus {
	switch targetOf(o.Rollout).(type) {
	case deployment.Target:
		return deployment.Reconstruct(&o)
	case servicepair.Target:
		return servicepair.Reconstruct(&o)
	}
	return v1alpha1.RolloutStatus{} // what a Rollout decides of a CanaryRelease is in that
}
