// SPDX-License-Identifier: Apache-2.0

package view

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// Group is a state by what a user has to do about it.
type Group string

// Groups of states.
const (
	Failed     Group = "Failed"     // goes on when a user has changed something
	NeedsUser  Group = "NeedsUser"  // waits for a decision
	InProgress Group = "InProgress" // goes on by itself
	Stable     Group = "Stable"     // nothing is left to do
	Unknown    Group = "Unknown"    // Serin has not looked at it
)

// Row is a Rollout in the fleet.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Group     Group  `json:"group"`
	// State is the reason of the condition Ready, and Message its sentence.
	State   string `json:"state"`
	Message string `json:"message"`
	// Step is the one in progress, such as "2/3"; StepIndex and StepCount are the same as numbers.
	Step      string `json:"step,omitempty"`
	StepIndex int32  `json:"stepIndex,omitempty"`
	StepCount int32  `json:"stepCount,omitempty"`
	// Requested and Live are the canary's share in percent; unset without a TrafficSplit.
	Requested *int32 `json:"requested,omitempty"`
	Live      *int32 `json:"live,omitempty"`
	// Evidence, Threshold and Verdict are those of status.analysis.
	Evidence  string `json:"evidence,omitempty"`
	Threshold string `json:"threshold,omitempty"`
	Verdict   string `json:"verdict,omitempty"`
	// StableRevision and CanaryRevision are "" where there is none.
	StableRevision string `json:"stableRevision,omitempty"`
	CanaryRevision string `json:"canaryRevision,omitempty"`
	Next           Next   `json:"next"`
}

// Next is what happens next, and when if that is known.
type Next struct {
	What string     `json:"what"`
	At   *time.Time `json:"at,omitempty"`
}

// MakeRow is the row of a Rollout.
func MakeRow(ro *v1alpha1.Rollout) Row {
	row := Row{
		Namespace: ro.Namespace, Name: ro.Name, Group: groupOf(ro), Next: nextOf(ro),
		State: rolloutview.State(ro), Message: rolloutview.Sentence(ro),
		StableRevision: revision(ro.Status.Stable), CanaryRevision: revision(ro.Status.Canary),
	}
	if s := ro.Status.Step; s != nil {
		row.Step, row.StepIndex, row.StepCount = s.Summary, s.Index, s.Of
	}
	if w := ro.Status.Weight; w != nil {
		row.Requested, row.Live = &w.Requested, w.Observed
	}
	if a := ro.Status.Analysis; a != nil {
		row.Evidence, row.Threshold, row.Verdict = a.Evidence, a.Threshold, a.Verdict
	}
	return row
}

func revision(v *v1alpha1.VersionStatus) string {
	if v == nil {
		return ""
	}
	return v.Revision
}

func groupOf(ro *v1alpha1.Rollout) Group {
	ready := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return Unknown
	case waitsFor[ready.Reason] != "":
		return NeedsUser
	case meta.IsStatusConditionTrue(ro.Status.Conditions, v1alpha1.ConditionStalled):
		return Failed
	case ready.Status == "True":
		return Stable
	}
	return InProgress
}

// waitsFor says what a user is waited for, by the state.
var waitsFor = map[string]string{
	v1alpha1.ReasonWaitingForApproval: "A user approves the step",
	v1alpha1.ReasonAnalysisFailed:     "A user decides: the analysis failed",
	v1alpha1.ReasonPaused:             "A user resumes",
}

// goesOn says what happens next in states that go on by themselves.
var goesOn = map[string]string{
	v1alpha1.ReasonDeploying:          "The first version becomes stable",
	v1alpha1.ReasonPreparing:          "The canary starts",
	v1alpha1.ReasonWaitingForPods:     "The pods of the step become ready",
	v1alpha1.ReasonWaitingForTraffic:  "The router programs the weight",
	v1alpha1.ReasonWaitingForEvidence: "Evidence decides the step",
	v1alpha1.ReasonWaitingForHook:     "A hook answers",
	v1alpha1.ReasonWaitingForSchedule: "The schedule opens",
	v1alpha1.ReasonPromoting:          "The canary becomes stable",
	v1alpha1.ReasonRollingBack:        "All traffic returns to stable",
	v1alpha1.ReasonSuperseded:         "The newer version is released",
	v1alpha1.ReasonCleaningUp:         "Traffic returns to the Service",
	v1alpha1.ReasonDeleting:           "The Rollout is deleted",
}

func nextOf(ro *v1alpha1.Rollout) Next {
	var next Next
	state := rolloutview.State(ro)
	switch groupOf(ro) {
	case Unknown:
		return Next{What: "Serin processes it"}
	case Stable:
		return Next{What: "The next change is released"}
	case Failed:
		return Next{What: "A user changes the workload or the Rollout"}
	case NeedsUser:
		return Next{What: waitsFor[state]}
	case InProgress: // it goes on by itself
	}
	if next.What = goesOn[state]; next.What == "" {
		next.What = afterHold(ro.Status.Step)
	}
	if t := ro.Status.NextTransitionTime; t != nil {
		next.At = &t.Time
	}
	return next
}

// afterHold is what follows the hold of a step.
func afterHold(s *v1alpha1.StepStatus) string {
	switch {
	case s == nil:
		return "Serin continues"
	case s.Index+1 < s.Of:
		return "The next step begins"
	}
	return "The canary is promoted"
}
