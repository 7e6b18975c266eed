// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Decision is what to do now.
type Decision struct {
	// Status is the status to write before any action. Where it equals the
	// stored one, nothing is written.
	Status v1alpha1.RolloutStatus
	// Later is whether the write of Status is put off. Until then it is remembered, and it is
	// the status of the Rollout in the next observation. A restart may forget it.
	Later bool
	// Actions in order; the first error stops the rest.
	Actions []kit.Action
	// Events notify users of transitions, after the status was written.
	Events []kit.Event
	// Measure is whether traffic must be measured now.
	Measure bool
	// Weight that is live, for the measurement. Its Since is zero while the
	// weight is changing, which must be known to the measurement before Actions.
	Weight analysis.Weight
	// Questions to put to hooks, and Notifications to send: all that are open. What
	// is not among them any more is given up.
	Questions     []Question
	Notifications []v1alpha1.PendingNotification
	// Entries are the windows that were judged, for the recording of the release Recorded.
	Entries  []recording.Entry
	Recorded recording.Release
	// Outage is whether no version that gets traffic has an available pod.
	Outage bool
	// LeftOut is whether a write of figures was left out, as LeaveOut of the Observation asks.
	LeftOut bool
	// After is when to look again if nothing changes; 0 means only on a change.
	After time.Duration
}

// Question is a call of a hook. It keeps its id when it is repeated.
type Question struct {
	ID       string
	Hook     v1alpha1.Hook
	Revision string
	// Index of the step that it is about, counted from 0, of how many, and the step's
	// weight in percent. Of is 0 where it is about the release as a whole.
	Index, Of, Weight int32
}

// Why a revision is promoted.
const (
	ReasonPassed         = "Passed"
	ReasonPromotedFully  = "PromotedFully"
	ReasonRollbackWindow = "RollbackWindow"
)
