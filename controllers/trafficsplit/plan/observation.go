// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/traffic"
)

// Observation is everything that a decision depends on. The zero value of each
// fact means that it is not known.
type Observation struct {
	// Now is the time of the observation.
	Now time.Time
	// Split as read. Never nil.
	Split *splitv1.TrafficSplit
	// Claim says who has to serve the split.
	Claim Claim
	// Router is the router's name that the split asks for.
	Router string
	// Moving is true when the data plane that exists is another router's than the
	// one that the split asks for. It has to go first.
	Moving bool
	// Rival is the split that has the root Service instead of this one, if any.
	Rival string

	// Resolved form of the split with the problems of resolving it and of its router.
	Resolved traffic.Split
	// Problems of the split, refusals first.
	Problems []traffic.Problem

	// Settling is how long the Service for the requests that match none is still too young to
	// be used.
	Settling time.Duration

	// Root is what is known of the root Service.
	Root Root
	// Endpoints of the root Service that are ready.
	Endpoints Endpoints
	// Draining are the EndpointSlices that keep pods of the root Service among its
	// endpoints for a while.
	Draining []traffic.Object
	// Leader is the name of the router that the data plane belongs to, and Means are its.
	Leader string
	Means  traffic.Means
	// Next are the means of the router that the split asks for; "" when it asks for none
	// of the operator's.
	Next traffic.Means
	// Confirmed is since when the routes were as wanted at the last look; nil when they
	// were not, or it is not known any more.
	Confirmed *splitv1.ConfirmedStatus
	// DataPlane is what exists of the data plane.
	DataPlane traffic.State
	// Pin is where the requests are kept to that reach the root Service past the routes.
	Pin Pin
	// Direct is what the root Service would select without a proxy. It is looked up
	// only on the way out.
	Direct Direct
	// BackendEndpoints is the number of ready endpoints of each Service that the
	// split refers to and that exists.
	BackendEndpoints map[string]int32
	// Fresh is how long data planes still get to learn of the ready endpoints of a Service
	// that have only just come.
	Fresh map[string]time.Duration
}

// Claim says who has to serve a split.
type Claim string

// The claims.
const (
	// ClaimOurs: one of the operator's routers serves the split.
	ClaimOurs Claim = "Ours"
	// ClaimElsewhere: another controller serves the split.
	ClaimElsewhere Claim = "Elsewhere"
	// ClaimUnknownRouter: the split asks for a router that does not exist.
	ClaimUnknownRouter Claim = "UnknownRouter"
)

// Root is what is known of the root Service.
type Root struct {
	Presence kit.Presence
	// Service is set when it is present.
	Service *corev1.Service
}

// gone is true when the root Service does not exist or is being deleted.
func (r Root) gone() bool {
	return r.Presence == kit.Absent || r.Presence == kit.Present && !r.Service.DeletionTimestamp.IsZero()
}

// Pin is what the root Service is to be narrowed to.
type Pin struct {
	// Backend whose pods get the requests; "" when the split names none.
	Backend string
	// Keys that the root Service's selector needs for that.
	Keys map[string]string
	// Problem is why the keys are not known; "" when they are.
	Problem string
	// Around is the number of ready endpoints of the root Service that are not the
	// Backend's.
	Around int
	// Missing is the number of ready endpoints of the Backend that are not the root Service's.
	Missing int
}

// Endpoints are the ready endpoints of the root Service.
type Endpoints struct {
	// Known is false when they could not be read.
	Known bool
	// Ready endpoints, each by the name of its pod, or "" when it is no pod.
	Ready []string
}

// Direct is what the root Service would select without the proxies.
type Direct struct {
	// Known is false when it was not, or could not be, looked up.
	Known bool
	// ReadyPods is the number of pods that are ready.
	ReadyPods int
	// Unselected is true for a Service whose owner selects no pods: there will be none.
	Unselected bool
}
