// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Action is one idempotent write. Its String is a line of the logs.
type Action interface {
	fmt.Stringer
	action()
}

// Target is the exact object that an action may change: another object of the
// same name, or a newer version of it, makes the action fail.
type Target struct {
	Name            string
	UID             types.UID
	ResourceVersion string
}

type (
	// AddFinalizer makes sure that Serin is asked before the CanaryRelease is gone.
	AddFinalizer struct{}
	// RemoveFinalizer lets the CanaryRelease go.
	RemoveFinalizer struct{}
	// ApplyBackend makes the Service of one version of a root Service select a revision.
	ApplyBackend struct{ Service, Role, Revision string }
	// DeleteBackend deletes such a Service.
	DeleteBackend struct{ Target }
	// ApplySplit writes how much of each port goes to the canary; stable gets the rest.
	ApplySplit struct {
		Service string
		Weights []PortWeight
	}
	// DeleteSplit deletes a TrafficSplit.
	DeleteSplit struct{ Target }
	// KeepCopy makes an object that pods of the canary read.
	KeepCopy struct{ Kind, Name string }
	// DropCopy deletes such an object.
	DropCopy struct {
		Target
		Kind string
	}
	// CreateCanary makes the ReplicaSet of a workload's candidate.
	CreateCanary struct {
		Workload string
		Replicas int32
	}
	// ScaleReplicaSet sets the replicas of a ReplicaSet and tells it the workload's scale.
	ScaleReplicaSet struct {
		Target
		Replicas, Desired int32
	}
	// DeleteReplicaSet deletes a ReplicaSet without pods.
	DeleteReplicaSet struct{ Target }
	// ReleaseCanary drops the controller reference: the Deployment adopts it.
	ReleaseCanary struct{ Target }
	// SetHold pauses a Deployment, or gives spec.paused back.
	SetHold struct {
		Workload string
		Paused   bool
	}
	// Upgrade makes the Helm release what the canary is.
	Upgrade struct{}
)

func (AddFinalizer) action()     {}
func (RemoveFinalizer) action()  {}
func (ApplyBackend) action()     {}
func (DeleteBackend) action()    {}
func (ApplySplit) action()       {}
func (DeleteSplit) action()      {}
func (KeepCopy) action()         {}
func (DropCopy) action()         {}
func (CreateCanary) action()     {}
func (ScaleReplicaSet) action()  {}
func (DeleteReplicaSet) action() {}
func (ReleaseCanary) action()    {}
func (SetHold) action()          {}
func (Upgrade) action()          {}

func (AddFinalizer) String() string    { return "add the finalizer" }
func (RemoveFinalizer) String() string { return "remove the finalizer" }
func (a ApplyBackend) String() string {
	return fmt.Sprintf("point the Service of %s's %s at %s", a.Service, a.Role, a.Revision)
}
func (a DeleteBackend) String() string { return "delete Service " + a.Name }
func (a ApplySplit) String() string {
	return fmt.Sprintf("set the canary's weights of %s to %s", a.Service, text(a.Weights))
}
func (a DeleteSplit) String() string { return "delete TrafficSplit " + a.Name }
func (a KeepCopy) String() string    { return fmt.Sprintf("make the %s %s", a.Kind, a.Name) }
func (a DropCopy) String() string    { return fmt.Sprintf("delete the %s %s", a.Kind, a.Name) }
func (a CreateCanary) String() string {
	return fmt.Sprintf("create the canary of %s with %d replicas", a.Workload, a.Replicas)
}

func (a ScaleReplicaSet) String() string {
	return fmt.Sprintf("scale ReplicaSet %s to %d", a.Name, a.Replicas)
}
func (a DeleteReplicaSet) String() string { return "delete ReplicaSet " + a.Name }
func (a ReleaseCanary) String() string {
	return "hand ReplicaSet " + a.Name + " over to its Deployment"
}

func (a SetHold) String() string {
	if a.Paused {
		return "pause Deployment " + a.Workload
	}
	return "let Deployment " + a.Workload + " go on"
}
func (Upgrade) String() string { return "upgrade the Helm release" }
