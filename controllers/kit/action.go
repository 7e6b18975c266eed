// SPDX-License-Identifier: Apache-2.0

package kit

import "fmt"

// Action is one idempotent write. Its String is a line of the logs.
type Action interface{ fmt.Stringer }

type (
	// AddFinalizer keeps the object until Serin has restored what it changed.
	AddFinalizer struct{}
	// RemoveFinalizer lets it go.
	RemoveFinalizer struct{}
	// Version is the Service of one version. Service is the root Service, and "" where
	// only one can be meant.
	Version struct{ Service, Role string }
	// ApplyBackend makes the Service of one version select a revision.
	ApplyBackend struct {
		Version
		Revision string
	}
	// DeleteBackend deletes the Service of one version.
	DeleteBackend struct {
		Object
		Version
	}
	// DeleteSplit deletes the TrafficSplit of a root Service.
	DeleteSplit struct {
		Object
		Service string
	}
	// ScaleReplicaSet sets the replicas of a ReplicaSet and records the workload's scale
	// on it, and why it was rejected; "" when it is not.
	ScaleReplicaSet struct {
		Object
		Replicas, Desired int32
		Rejected          string
	}
	// DeleteReplicaSet deletes a ReplicaSet without pods.
	DeleteReplicaSet struct{ Object }
	// ReleaseCanary drops the controller reference: the Deployment adopts it. Promotion, where
	// it has one, is written on it.
	ReleaseCanary struct {
		Object
		Promotion string
	}
)

func (AddFinalizer) String() string    { return "add the finalizer" }
func (RemoveFinalizer) String() string { return "remove the finalizer" }
func (v Version) String() string {
	if v.Service == "" {
		return "the Service of " + v.Role
	}
	return fmt.Sprintf("the Service of %s's %s", v.Service, v.Role)
}

func (a ApplyBackend) String() string  { return fmt.Sprintf("point %s at %s", a.Version, a.Revision) }
func (a DeleteBackend) String() string { return "delete " + a.Version.String() }
func (a DeleteSplit) String() string {
	if a.Service == "" {
		return "delete the TrafficSplit"
	}
	return "delete the TrafficSplit of " + a.Service
}

func (a ScaleReplicaSet) String() string {
	return fmt.Sprintf("scale ReplicaSet %s to %d", a.Name, a.Replicas)
}
func (a DeleteReplicaSet) String() string { return "delete ReplicaSet " + a.Name }
func (a ReleaseCanary) String() string {
	return "hand ReplicaSet " + a.Name + " over to the Deployment"
}
