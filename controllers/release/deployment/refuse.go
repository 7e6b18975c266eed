// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// workloadGone reports whether there is no Deployment, and so no stable version.
func workloadGone(s *state.Snapshot) bool {
	return s.Workload.Presence == kit.Absent || s.Workload.Deleting
}

// refuse says why a Deployment can't be released.
func refuse(s *state.Snapshot) *kit.Statement {
	if workloadGone(s) {
		return state.Refuse(v1alpha1.ReasonWorkloadNotFound, "spec.workloadRef: the Deployment %q does not exist in this namespace; create it or correct the name.", s.Rollout.Spec.WorkloadRef.Name)
	}
	for _, why := range []*kit.Statement{
		state.ServiceMissing(s), serviceTaken(s, v1alpha1.RoleStable, &s.StableService),
		serviceTaken(s, v1alpha1.RoleCanary, &s.CanaryService), state.SplitTaken(s),
		refusePreview(s),
	} {
		if why != nil {
			return why
		}
	}
	return nil
}

// serviceTaken says that the name of a version's Service is another owner's.
func serviceTaken(s *state.Snapshot, role string, b *kit.Backend) *kit.Statement {
	if b.Presence != kit.Present || b.Ours {
		return nil
	}
	return state.Refuse(v1alpha1.ReasonConflict, "The Service %q exists already and is not Serin's; rename or delete it, since a release needs the name.", s.Rollout.Spec.Service+"-"+role)
}
