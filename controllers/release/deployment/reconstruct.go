// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Reconstruct is the record of a Rollout that is gone, as far as restoring needs it:
//
//	pods that the Deployment controls            | stable is
//	---------------------------------------------+------------------------------------------
//	of one version                               | that one
//	of several, or none                          | what the Service of stable selects
//	of several, without that Service             | the largest beside the template that the Deployment is paused on
//	of the canary, which has all traffic, beside | the same, and the canary was handed over
//
// Without pods and without that Service no version is stable.
func Reconstruct(o *state.Observation) v1alpha1.RolloutStatus {
	var record v1alpha1.RolloutStatus
	stable := stableOf(o)
	if stable != "" {
		record.Stable = &v1alpha1.VersionStatus{Revision: stable}
	}
	if o.CanaryService.Presence == kit.Present {
		record.Canary = &v1alpha1.VersionStatus{Revision: o.CanaryService.Revision}
	}
	if promoted(o, stable) {
		record.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Revision: o.CanaryService.Revision, HandedOver: true}
	}
	if o.Split.Presence == kit.Absent && o.StableService.Ours && o.CanaryService.Ours {
		record.Weight = &v1alpha1.WeightStatus{} // requests may still go to the Services
	}
	return record
}

// stableOf is the revision of the stable version; "" for none.
func stableOf(o *state.Observation) string {
	var only *kit.ReplicaSet
	others := 0
	for i := range o.ReplicaSets {
		if r := &o.ReplicaSets[i]; r.Owner != kit.OwnerSerin && !r.Gone() {
			only, others = r, others+1
		}
	}
	if others == 1 {
		return only.Revision
	}
	if held := largest(o.ReplicaSets, func(r *kit.ReplicaSet) bool { return r.Owner != kit.OwnerSerin && !r.Current }); held != nil && o.StableService.Revision == "" && o.Workload.Paused {
		return held.Revision
	}
	return o.StableService.Revision
}

// promoted reports whether the canary was handed over beside stable: only one that has all
// traffic is, and all pods. Without a split that says so, the Deployment may have adopted it
// before.
func promoted(o *state.Observation, stable string) bool {
	all := strategy.Route{Weight: strategy.FullWeight}
	if o.Split.Presence == kit.Present && !o.Split.Requested.Equal(all) || !o.CanaryService.Ours || o.CanaryService.Revision == stable {
		return false
	}
	for i := range o.ReplicaSets {
		r := &o.ReplicaSets[i]
		if r.Revision == o.CanaryService.Revision && r.Owner != kit.OwnerSerin && !r.Gone() {
			return o.Split.Presence == kit.Present || r.Replicas >= o.Workload.Replicas
		}
	}
	return false
}
