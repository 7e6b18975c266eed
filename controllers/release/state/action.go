// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/strategy"
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
	// PointPreview has a preview Service select the pods of one revision; "" for what its
	// owner declares.
	PointPreview struct {
		kit.Object
		Revision string
	}
	// ApplySplit writes what goes to the canary; stable gets the rest.
	ApplySplit struct{ strategy.Route }
	// KeepContent makes the copy of a ConfigMap or Secret as it is now.
	KeepContent struct {
		Kind v1alpha1.ConfigurationKind
		Name string
	}
	// SetConfiguration makes the contents of ConfigMaps and Secrets part of the
	// Deployment's template; "" removes them.
	SetConfiguration struct{ Value string }
	// DropContent deletes a copy that no version reads.
	DropContent struct{ Copied }
	// SetDelegation sets the traffic in percent that a CanaryRelease gives its present
	// content, and how it has to end; "" leaves that open.
	SetDelegation struct {
		Weight     int32
		Transition v1alpha1.CanaryTransition
	}
	// ClearDelegation removes all of that.
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

func (a PointPreview) String() string {
	if a.Revision == "" {
		return "restore the selector of the preview Service " + a.Name
	}
	return fmt.Sprintf("point the preview Service %s at %s", a.Name, a.Revision)
}

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
