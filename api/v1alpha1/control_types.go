// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Control is what a user decides about the release of one revision.
type Control struct {
	// revision is the value of status.canary.revision that the decision is about. It is never
	// carried out for another revision.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// action is Promote (end the gate and the hold of the step; evidence is still
	// needed), Skip (end the step without evidence too), PromoteFull (skip all steps
	// that are left), Abort (roll back) or Retry (release a revision again that was
	// rolled back).
	// +required
	Action ControlAction `json:"action"`

	// stepIndex is the step that Promote or Skip ends, counted from 0 like status.step.index. A
	// decision about an earlier step has no effect; one about a later step waits. When unset,
	// it is the step in progress.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	StepIndex *int32 `json:"stepIndex,omitempty"`

	// reason is kept in the history.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// by is the name of the user who decided. The admission policy of the chart
	// writes it and refuses any other name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`
}

// ControlAction is what a user can decide.
//
// +kubebuilder:validation:Enum=Promote;Skip;PromoteFull;Abort;Retry
type ControlAction string

// What a user can decide.
const (
	// ControlPromote ends the gate and the hold of a step.
	ControlPromote ControlAction = "Promote"
	// ControlSkip ends a step without evidence.
	ControlSkip ControlAction = "Skip"
	// ControlPromoteFull skips all steps that are left.
	ControlPromoteFull ControlAction = "PromoteFull"
	// ControlAbort rolls back.
	ControlAbort ControlAction = "Abort"
	// ControlRetry releases a rejected revision again.
	ControlRetry ControlAction = "Retry"
)

// ControlStatus is a decision of a user that Serin has seen.
type ControlStatus struct {
	// control that was seen.
	// +required
	Control Control `json:"control"`

	// seenAt is when Serin saw it.
	// +required
	SeenAt metav1.MicroTime `json:"seenAt"`

	// ignored says why the decision had no effect.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Ignored string `json:"ignored,omitempty"`
}

// Intervention is what a user decided during one release.
type Intervention struct {
	// action that was carried out.
	// +required
	Action ControlAction `json:"action"`

	// stepIndex is the step that it was carried out in. Unset before the first.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	StepIndex *int32 `json:"stepIndex,omitempty"`

	// by is the name of the user who decided.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`

	// reason that was given.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// time at which it was carried out.
	// +required
	Time metav1.MicroTime `json:"time"`
}
