// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Action is one idempotent write. Its String is a line of the golden logs.
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
	// AddFinalizer makes sure that Serin is asked before the Rollout is gone.
	AddFinalizer struct{}
	// RemoveFinalizer lets the Rollout go.
	RemoveFinalizer struct{}
	// SetPaused marks the Deployment as managed and sets spec.paused.
	SetPaused struct{ Paused bool }
	// RestoreDeployment removes the mark; spec.paused stays true when Paused.
	RestoreDeployment struct{ Paused bool }
	// CreateCanary makes the ReplicaSet of the Deployment's template.
	CreateCanary struct {
		Revision string
		Replicas int32
	}
	// AdoptCanary takes over an old ReplicaSet of the Deployment, without pods,
	// whose template is the Deployment's template again.
	AdoptCanary struct{ Target }
	// ScaleReplicaSet sets the replicas of a ReplicaSet and tells it the
	// workload's scale.
	ScaleReplicaSet struct {
		Target
		Replicas, Desired int32
	}
	// ReleaseCanary drops the controller reference: the Deployment adopts it.
	ReleaseCanary struct{ Target }
	// DeleteReplicaSet deletes a ReplicaSet without pods.
	DeleteReplicaSet struct{ Target }
	// ApplyBackend makes the Service of one version select a revision.
	ApplyBackend struct{ Role, Revision string }
	// DeleteBackend deletes the Service of one version.
	DeleteBackend struct {
		Target
		Role string
	}
	// ApplySplit writes what goes to the canary; stable gets the rest.
	ApplySplit struct{ Route }
	// DeleteSplit deletes the TrafficSplit.
	DeleteSplit struct{ Target }
	// KeepContent makes the copy of a ConfigMap or Secret as it is now.
	KeepContent struct {
		Kind v1alpha1.ConfigurationKind
		Name string
	}
	// SetConfiguration makes the contents of ConfigMaps and Secrets part of the
	// Deployment's template; "" takes them out of it.
	SetConfiguration struct{ Value string }
	// DropContent deletes a copy that no version reads.
	DropContent struct{ Copied }
	// SetDelegation tells a CanaryRelease how much traffic its present content gets in percent,
	// and how it is to end; "" leaves that open.
	SetDelegation struct {
		Weight     int32
		Transition v1alpha1.CanaryTransition
	}
	// ClearDelegation takes all of that back.
	ClearDelegation struct{}
)

func (AddFinalizer) action()      {}
func (RemoveFinalizer) action()   {}
func (SetPaused) action()         {}
func (RestoreDeployment) action() {}
func (CreateCanary) action()      {}
func (AdoptCanary) action()       {}
func (ScaleReplicaSet) action()   {}
func (ReleaseCanary) action()     {}
func (DeleteReplicaSet) action()  {}
func (ApplyBackend) action()      {}
func (DeleteBackend) action()     {}
func (ApplySplit) action()        {}
func (DeleteSplit) action()       {}
func (KeepContent) action()       {}
func (SetConfiguration) action()  {}
func (DropContent) action()       {}
func (SetDelegation) action()     {}
func (ClearDelegation) action()   {}

func (AddFinalizer) String() string    { return "add the finalizer" }
func (RemoveFinalizer) String() string { return "remove the finalizer" }
func (a SetPaused) String() string {
	if a.Paused {
		return "pause the Deployment"
	}
	return "mark the Deployment as managed, not paused"
}

func (a RestoreDeployment) String() string {
	if a.Paused {
		return "restore the Deployment, still paused"
	}
	return "restore the Deployment"
}

func (a CreateCanary) String() string {
	return fmt.Sprintf("create canary %s with %d replicas", a.Revision, a.Replicas)
}
func (a AdoptCanary) String() string { return "adopt ReplicaSet " + a.Name + " as canary" }
func (a ScaleReplicaSet) String() string {
	return fmt.Sprintf("scale ReplicaSet %s to %d", a.Name, a.Replicas)
}

func (a ReleaseCanary) String() string {
	return "hand ReplicaSet " + a.Name + " over to the Deployment"
}
func (a DeleteReplicaSet) String() string { return "delete ReplicaSet " + a.Name }
func (a ApplyBackend) String() string {
	return fmt.Sprintf("point the Service of %s at %s", a.Role, a.Revision)
}
func (a DeleteBackend) String() string { return "delete the Service of " + a.Role }
func (a ApplySplit) String() string    { return "set the canary's weight to " + a.Route.String() }
func (DeleteSplit) String() string     { return "delete the TrafficSplit" }

func (a KeepContent) String() string {
	return fmt.Sprintf("keep a copy of the %s %s", a.Kind, a.Name)
}

func (a SetConfiguration) String() string {
	return fmt.Sprintf("set the template's configuration to %q", a.Value)
}
func (a DropContent) String() string { return "delete the copy " + a.Name }

func (a SetDelegation) String() string {
	s := fmt.Sprintf("have the CanaryRelease send %d %% to the canary", a.Weight)
	if a.Transition != v1alpha1.CanaryTransitionNone {
		s += fmt.Sprintf(" and be %s", a.Transition)
	}
	return s
}
func (ClearDelegation) String() string { return "clear spec.delegation of the CanaryRelease" }
