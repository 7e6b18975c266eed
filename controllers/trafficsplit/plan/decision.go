// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// Decision is what to do now and what to say.
type Decision struct {
	// Actions in the order in which they have to be carried out. The first that
	// fails ends the pass.
	Actions []Action
	// Report is written after the actions; nil leaves the status alone.
	Report *Report
	// RequeueAfter is when to look again at something that no watch reports; 0 when
	// every change that matters is watched.
	RequeueAfter time.Duration
}

// ActionType is a kind of action.
type ActionType string

// The actions.
const (
	// AddFinalizer to the split.
	AddFinalizer ActionType = "AddFinalizer"
	// Apply an object of the data plane.
	Apply ActionType = "Apply"
	// Drain keeps the pods of the root Service among its endpoints for a while.
	Drain ActionType = "Drain"
	// CutOver the root Service to the proxies: their key is added to its selector.
	CutOver ActionType = "CutOver"
	// PinRoot adds the keys of a backend to what the root Service selects by.
	PinRoot ActionType = "PinRoot"
	// UnpinRoot removes those keys.
	UnpinRoot ActionType = "UnpinRoot"
	// RestoreRoot removes the proxies' key from the selector of the root Service.
	RestoreRoot ActionType = "RestoreRoot"
	// Restore a patched object to what its owner wants without the split.
	Restore ActionType = "Restore"
	// Delete an object of the data plane.
	Delete ActionType = "Delete"
	// ForgetProxy removes the report of a proxy that is gone.
	ForgetProxy ActionType = "ForgetProxy"
	// RemoveFinalizer from the split.
	RemoveFinalizer ActionType = "RemoveFinalizer"
)

// Action is one write. It fails when its object is no longer as observed.
type Action struct {
	// Type of the action.
	Type ActionType
	// Object that is written, with the UID and resourceVersion that it must have.
	// For ForgetProxy only the name of the proxy.
	Object traffic.Object
	// Why the action is taken, for the log.
	Why string
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
	// Confirmed is since when the routes are as wanted; nil when they are not.
	Confirmed *splitv1.ConfirmedStatus
}

// Condition is a condition of the status without what depends on the time.
type Condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}
