// SPDX-License-Identifier: Apache-2.0

package versions

import "github.com/serin-dev/serin/controllers/kit"

// Find returns the first version that matches, or nil.
func Find(all []kit.ReplicaSet, match func(*kit.ReplicaSet) bool) *kit.ReplicaSet {
	for i := range all {
		if match(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// Others are the versions of the Deployment, except one of them, that still have pods.
func Others(all []kit.ReplicaSet, than *kit.ReplicaSet) (left []*kit.ReplicaSet) {
	for i := range all {
		if r := &all[i]; r.Owner == kit.OwnerDeployment && r.UID != than.UID && !r.Gone() {
			left = append(left, r)
		}
	}
	return left
}

// Saturated reports whether a version has exactly the workload's pods, all of them
// available, and knows the workload's scale. The Deployment controller scales both versions
// in proportion when it adopts one that has not.
func Saturated(r *kit.ReplicaSet, scale int32) bool {
	return r.Replicas == scale && r.Existing == scale && r.Available == scale && r.Desired == scale
}

// Scale gives a version so many pods and records the workload's scale on it, where they differ.
// A version without any waits until its previous pods are gone: they may be counted as available
// after they were deleted.
func Scale(d *kit.Draft, r *kit.ReplicaSet, replicas, scale int32) {
	if replicas > 0 && r.Replicas == 0 && !r.Gone() {
		return
	}
	if r.Replicas != replicas || r.Desired != scale {
		d.Do(kit.ScaleReplicaSet{Object: r.Object, Replicas: replicas, Desired: scale})
	}
}

// Empty removes the pods of a version that gets no traffic.
func Empty(d *kit.Draft, r *kit.ReplicaSet) { Scale(d, r, 0, r.Desired) }

// Delete deletes a version without pods, once.
func Delete(d *kit.Draft, r *kit.ReplicaSet) {
	if !r.Deleting {
		d.Do(kit.DeleteReplicaSet{Object: r.Object})
	}
}

// HandOver has the Deployment adopt a version that is saturated, once routed reports that
// it gets all traffic. It reports whether the version was handed over. The promotion, if it
// has a name, is known from the version in the write that hands it over.
func HandOver(d *kit.Draft, r *kit.ReplicaSet, scale int32, promotion string, routed func() bool) bool {
	if !Saturated(r, scale) || !routed() {
		return false
	}
	d.Do(kit.ReleaseCanary{Object: r.Object, Promotion: promotion})
	return true
}
