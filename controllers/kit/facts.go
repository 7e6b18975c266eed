// SPDX-License-Identifier: Apache-2.0

package kit

import "k8s.io/apimachinery/pkg/types"

// Presence says whether an object is there. The zero value is Unknown, so that a
// fact that was not looked up never counts as an absent object.
type Presence int

// Whether an object is there.
const (
	// Unknown: it could not be read. Nothing is decided from it.
	Unknown Presence = iota
	// Absent: the API said that it does not exist.
	Absent
	// Present: it was read.
	Present
)

// Object is the exact object that was observed. An action that names it fails for another
// object of the same name, and for a newer version of it.
type Object struct {
	Name            string
	UID             types.UID
	ResourceVersion string
}

// Owner is the controller of a ReplicaSet.
type Owner int

// Who controls a ReplicaSet.
const (
	// OwnerNone: the Deployment controller will adopt it.
	OwnerNone Owner = iota
	// OwnerDeployment: the workload.
	OwnerDeployment
	// OwnerSerin: no other controller acts on it; it is marked as a canary.
	OwnerSerin
)

// ReplicaSet is one version of a workload. ReplicaSets of other owners are not observed.
type ReplicaSet struct {
	Object
	Owner    Owner
	Revision string
	// Current is whether its template is the workload's template.
	Current bool
	// Replicas wanted, existing, and available.
	Replicas, Existing, Available int32
	// Uncounted is whether Existing and Available are of an earlier generation, or of none.
	Uncounted bool
	// Desired is the workload's scale that is recorded on it.
	Desired  int32
	Deleting bool
	// Promotion is the one for which it was handed over to the Deployment; "" for none.
	Promotion string
	// Rejected is why it was rolled back, as it is written on it; "" when it was not, or is released
	// again.
	Rejected string
	// Marked is whether it carries the mark of what is released.
	Marked bool
	// Unpromoted is whether it was made a canary, for what is released or for an earlier one of
	// its name, and never became the version of the Deployment, which controls one whose owner
	// was lost, as after the restore of a backup.
	Unpromoted bool
	// Rolls is whether it was made of pods that read objects of its own, so that the
	// Deployment makes others.
	Rolls bool
	// Failure says why its pods can't be created; "" when they can.
	Failure string
}

// Gone reports whether no pod of the ReplicaSet exists or will be made.
func (r *ReplicaSet) Gone() bool { return r.Replicas == 0 && r.Existing == 0 && !r.Uncounted }

// Backend is the Service of one version.
type Backend struct {
	Object
	Presence Presence
	// Ours is whether it was made for what is released.
	Ours bool
	// Revision that it selects.
	Revision string
	// UpToDate is whether it is what Serin would make for Revision now.
	UpToDate bool
	// Ready are the ready endpoints that are pods of Revision, where that was looked up.
	Ready int32
}

// Selects reports whether it is there and selects a revision.
func (b *Backend) Selects(revision string) bool {
	return b.Presence == Present && b.Revision == revision
}

// Split is what every planner wants to know of a TrafficSplit.
type Split struct {
	Object
	Presence Presence
	// Ours is whether it was made for what is released.
	Ours     bool
	Deleting bool
	// Programmed is whether the router reports the present spec programmed everywhere.
	Programmed bool
	// Refused is why the router does not accept it; "" when it does.
	Refused string
	// Unserved is whether it is refused and nothing of it is programmed: requests don't
	// pass by it.
	Unserved bool
	// Waiting is what the router waits for, in words for users.
	Waiting string
}

// Leaving is what the router waits for before a split that is being deleted is gone, as the end of a
// sentence; "" when it does not say.
func (s *Split) Leaving() string {
	if s.Presence != Present || !s.Deleting || s.Waiting == "" {
		return ""
	}
	return ": " + s.Waiting
}

// Why says why the present spec is not programmed yet.
func (s *Split) Why() string {
	switch {
	case s.Refused != "":
		return "the router refuses the TrafficSplit: " + s.Refused
	case s.Waiting != "":
		return s.Waiting
	}
	return "the router has not confirmed it yet"
}
