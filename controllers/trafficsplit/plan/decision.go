// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
)

// Decision is what to do now and what to say.
type Decision struct {
	// Report is written before the actions; nil leaves the status alone.
	Report *Report
	// Actions in the order in which they have to be carried out. The first that
	// fails ends the pass.
	Actions []kit.Action
	// After is when to look again at something that no watch reports; 0 when every
	// change that matters is watched.
	After time.Duration
}

// Report is what the status has to say.
type Report struct {
	// Accepted, ResolvedRefs and Programmed are the conditions.
	Accepted, ResolvedRefs, Programmed Condition
	// Distribution of the traffic among endpoints; nil when no Service asks for one.
	Distribution *Distribution
	// Backends are the live weights.
	Backends []splitv1.BackendStatus
	// Mirror is the live mirroring; nil for none.
	Mirror *splitv1.MirrorStatus
	// Router is the name of the router that leads the traffic, or withdraws; "" for none.
	Router string
	// Proxies sums up what the router's proxies serve; nil without any.
	Proxies *splitv1.ProxiesStatus
	// Confirmed is since when the routes are as wanted; nil when they are not.
	Confirmed *splitv1.ConfirmedStatus
}

// Condition is a condition of the status without what depends on the time.
type Condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}
