// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

type (
	// SetPaused marks the Deployment as managed and sets spec.paused.
	SetPaused struct{ Paused bool }
	// RestoreDeployment removes the mark; spec.paused stays true when Paused.
	RestoreDeployment struct{ Paused bool }
	// CreateCanary makes the ReplicaSet of the Deployment's template.
	CreateCanary struct {
		Revision string
		Replicas int32
	}
	// AdoptCanary makes an old ReplicaSet of the Deployment, without pods, the canary: its
	// template is the Deployment's template again.
	AdoptCanary struct{ kit.Object }
	// ApplySplit writes what goes to the canary; stable gets the rest.
	ApplySplit struct{ Route }
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

func (a ApplySplit) String() string { return "set the canary's weight to " + a.Route.String() }

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
