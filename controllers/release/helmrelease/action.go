// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"

	"github.com/serin-dev/serin/controllers/kit"
)

type (
	// ApplySplit writes how much of each port goes to the canary; stable gets the rest.
	ApplySplit struct {
		Service string
		Weights []PortWeight
	}
	// KeepCopy makes an object that pods of the canary read.
	KeepCopy struct{ Kind, Name string }
	// DropCopy deletes such an object.
	DropCopy struct {
		kit.Object
		Kind string
	}
	// CreateCanary makes the ReplicaSet of a workload's candidate.
	CreateCanary struct {
		Workload string
		Replicas int32
	}
	// SetHold pauses a Deployment, or lets its controller go on.
	SetHold struct {
		Workload string
		Paused   bool
	}
	// Upgrade makes the Helm release what the canary is.
	Upgrade struct{}
)

func (a ApplySplit) String() string {
	return fmt.Sprintf("set the canary's weights of %s to %s", a.Service, text(a.Weights))
}
func (a KeepCopy) String() string { return fmt.Sprintf("make the %s %s", a.Kind, a.Name) }
func (a DropCopy) String() string { return fmt.Sprintf("delete the %s %s", a.Kind, a.Name) }
func (a CreateCanary) String() string {
	return fmt.Sprintf("create the canary of %s with %d replicas", a.Workload, a.Replicas)
}

func (a SetHold) String() string {
	if a.Paused {
		return "pause Deployment " + a.Workload
	}
	return "let Deployment " + a.Workload + " go on"
}
func (Upgrade) String() string { return "upgrade the Helm release" }
