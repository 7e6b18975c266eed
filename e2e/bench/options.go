// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/controlplane"
)

// Weights are the weights of the release that is measured, each with a hold.
var Weights = [...]int32{20, 50}

// Options say what is measured.
type Options struct {
	// Sizes are how many releases run at once, one measurement each.
	Sizes []int
	// Idle is how many Rollouts do nothing, for IdleFor; 0 leaves this out.
	Idle    int
	IdleFor time.Duration
	// Deployments without a Rollout, with Old ReplicaSets of earlier templates each: the
	// manager is measured when it has read them all. 0 leaves this out.
	Deployments, Old int
	// Router of the Rollouts.
	Router v1alpha1.RouterName
	// Replicas of each Deployment at a size. [DefaultReplicas] when nil.
	Replicas func(size int) int32
	// Hold is how long each weight is held. Requests do not depend on it.
	Hold time.Duration
	// PerNamespace is how many Rollouts share a namespace.
	PerNamespace int
	// Plane, when set, is used for everything; it needs the controller manager, the
	// fake node and [Audit] among its arguments. Otherwise each measurement gets a
	// control plane of its own.
	Plane *controlplane.ControlPlane
	// ManagerArgs are added to the flags of the operator that the chart gives it.
	ManagerArgs []string
	// Requests, when set, is told every request of the operator during releases, in
	// the order in which the API server received them.
	Requests io.Writer
	// Out is told what is going on.
	Out io.Writer
	// Clock that measurements are timed by.
	Clock clock.WithTicker
}

// DefaultReplicas gives each of few Deployments ten pods and each of many two, so
// that the machine that runs all of this is not busy with pods alone.
func DefaultReplicas(size int) int32 {
	if size >= 500 {
		return 2
	}
	return 10
}

func (o Options) withDefaults() (Options, error) {
	o.Router = cmp.Or(o.Router, v1alpha1.RouterNone)
	o.Hold = cmp.Or(o.Hold, 10*time.Second)
	o.IdleFor = cmp.Or(o.IdleFor, time.Minute)
	o.PerNamespace = cmp.Or(o.PerNamespace, 50)
	if o.Replicas == nil {
		o.Replicas = DefaultReplicas
	}
	for _, size := range o.Sizes {
		if size < 1 {
			return o, fmt.Errorf("sizes: %d is no number of releases; write numbers from 1 on", size)
		}
	}
	if o.Deployments < 0 || o.Old < 0 {
		return o, fmt.Errorf("%d Deployments with %d old ReplicaSets: neither can be negative", o.Deployments, o.Old)
	}
	if o.Idle < 0 || o.PerNamespace < 1 || o.Hold < time.Second {
		return o, fmt.Errorf("idle %d, per namespace %d, hold %s: need at least 0, 1 and 1s", o.Idle, o.PerNamespace, o.Hold)
	}
	return o, nil
}
