// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutStatus is what Serin observed and did.
type RolloutStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status
	// was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions explain the state: Ready, Progressing, TrafficRouted, AnalysisPassed and
	// Paused, and the abnormal ones Unguarded, Reconciling and Stalled, which exist only while
	// they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// stable is the version that is known to be good and that a rollback returns to.
	// +optional
	Stable *VersionStatus `json:"stable,omitempty"`

	// canary is the version that is being released, or the last one that was
	// rolled back.
	// +optional
	Canary *VersionStatus `json:"canary,omitempty"`

	// step is the step of the release in progress. Unset when there is none.
	// +optional
	Step *StepStatus `json:"step,omitempty"`

	// weight is the canary's share of the traffic. Unset when no TrafficSplit is
	// in place.
	// +optional
	Weight *WeightStatus `json:"weight,omitempty"`

	// decision is what was decided about the canary's revision. Unset before that. It holds
	// until the workload's template changes.
	// +optional
	Decision *Decision `json:"decision,omitempty"`

	// analysis is the evidence for and against the canary.
	// +optional
	Analysis *AnalysisStatus `json:"analysis,omitempty"`

	// control is the latest decision of a user that Serin has seen in
	// spec.control.
	// +optional
	Control *ControlStatus `json:"control,omitempty"`

	// interventions are the decisions of users that were carried out in the
	// release in progress.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Interventions []Intervention `json:"interventions,omitempty"`

	// hooks are the calls to hooks in the release in progress, with their answers.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Hooks []HookStatus `json:"hooks,omitempty"`

	// notifications are those that their endpoints have not accepted yet, oldest first.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Notifications []PendingNotification `json:"notifications,omitempty"`

	// configuration lists the ConfigMaps and Secrets whose content spec.configuration last made
	// part of a version.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Configuration []ConfigurationStatus `json:"configuration,omitempty"`

	// dispersion is what Serin has learned about how far requests to stable fail together, in a
	// compact form that only Serin reads. The next release begins with it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Dispersion string `json:"dispersion,omitempty"`

	// nextTransitionTime is when the release goes on if nothing else happens. Unset when it
	// waits for something other than time.
	// +optional
	NextTransitionTime *metav1.Time `json:"nextTransitionTime,omitempty"`

	// history lists the latest releases that ended, newest first, at most
	// spec.historyLimit of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	History []HistoryEntry `json:"history,omitempty"`
}

// VersionStatus describes one version of the workload.
type VersionStatus struct {
	// revision is the pod-template-hash of the version's pods. For a CanaryRelease, it is a
	// digest of its content, and "helm-N" for stable.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// service is the Service that leads to the version. Only set with spec.services.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Service string `json:"service,omitempty"`

	// replicas is the number of pods wanted.
	// +required
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// ready is the number of pods that are ready and have been so for the
	// workload's minReadySeconds.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`

	// startedAt is when the release of the version began. Unset for stable.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
}

// StepStatus is where the release in progress stands.
type StepStatus struct {
	// index of the step in spec.strategy.steps, or among those that spec.strategy.ramp
	// or blueGreen stand for, counted from 0. One past the last step means that the
	// canary is being promoted.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Index int32 `json:"index"`

	// of is the number of steps.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Of int32 `json:"of"`

	// summary is the step for users: "2/3", counted from 1.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Summary string `json:"summary"`

	// weight of the step in percent, which is requested from the router once the pods for it
	// are available. When the steps are edited, the release goes on at this weight or the
	// nearest lower one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight,omitempty"`

	// matches of the step. Unset when all requests are split.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Matches []string `json:"matches,omitempty"`

	// startedAt is when the step before ended.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// preparedAt is when Serin began to prepare the step, after whatever held it up:
	// a schedule, a hook, or spec.paused. The progress deadline counts from here.
	// +optional
	PreparedAt *metav1.MicroTime `json:"preparedAt,omitempty"`

	// interruptedAt is when a programmed step lost its pods or its weight. The release is
	// rolled back if both are not back within spec.progressDeadline.
	// +optional
	InterruptedAt *metav1.MicroTime `json:"interruptedAt,omitempty"`

	// passedAt is when a user or a hook approved the step, which ends its hold too.
	// +optional
	PassedAt *metav1.MicroTime `json:"passedAt,omitempty"`

	// analysisSkipped is true when a user skipped the analysis of the step (action Skip).
	// +optional
	AnalysisSkipped bool `json:"analysisSkipped,omitempty"`

	// failureAccepted is true when a user decided to begin the step although the analysis had
	// failed.
	// +optional
	FailureAccepted bool `json:"failureAccepted,omitempty"`

	// holdoutUntil is set when the canary is promoted ahead of time: it is when the last step
	// would have ended. Until then the canary has a weight of 95, and stable keeps the rest.
	// +optional
	HoldoutUntil *metav1.MicroTime `json:"holdoutUntil,omitempty"`

	// holdoutFrom is the weight that the last step had in spec.strategy when the canary was
	// promoted ahead of time. If that weight is edited, the release goes on at the new one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	HoldoutFrom int32 `json:"holdoutFrom,omitempty"`

	// notifiedAt is when the notification was sent that the step waits for approval.
	// +optional
	NotifiedAt *metav1.MicroTime `json:"notifiedAt,omitempty"`

	// programmedAt is when the router reported the weight of the step as programmed.
	// The hold counts from here, and only traffic after it is evidence.
	// +optional
	ProgrammedAt *metav1.MicroTime `json:"programmedAt,omitempty"`
}

// WeightStatus is the canary's share of the traffic in percent.
type WeightStatus struct {
	// requested is the weight that Serin last requested from the router.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Requested int32 `json:"requested"`

	// matches are the HTTPRouteGroups that Serin last requested from the router. Unset when all
	// requests are split.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Matches []string `json:"matches,omitempty"`

	// observed is the weight that the router last reported as programmed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Observed *int32 `json:"observed,omitempty"`

	// since is when the router first reported the requested weight as programmed. Unset while
	// the weight is changing. Only traffic after it is compared.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
}

// DecisionAction is what was decided about a revision.
//
// +kubebuilder:validation:Enum=Promote;RollBack
type DecisionAction string

// What can be decided about a revision.
const (
	// ActionPromote makes the canary stable.
	ActionPromote DecisionAction = "Promote"
	// ActionRollBack takes the canary out.
	ActionRollBack DecisionAction = "RollBack"
)

// Decision is the verdict on one revision.
type Decision struct {
	// revision that was decided on.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// action that was decided: Promote or RollBack.
	// +required
	Action DecisionAction `json:"action"`

	// reason is a CamelCase word for programs.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`

	// message is a sentence for users.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// time of the decision.
	// +required
	Time metav1.MicroTime `json:"time"`

	// handedOver is true once the promoted version was handed over to the workload, if no
	// ReplicaSet records that.
	// +optional
	HandedOver bool `json:"handedOver,omitempty"`

	// weight that was live at the time of the decision, in percent. A gradual
	// rollback begins here.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight,omitempty"`
}

// AnalysisStatus is the evidence for and against the canary.
type AnalysisStatus struct {
	// verdict on the present step: Pass, Fail or Inconclusive.
	// +required
	// +kubebuilder:validation:Enum=Pass;Fail;Inconclusive
	Verdict string `json:"verdict"`

	// reason is a CamelCase word for programs.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`

	// message is a sentence for users.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// evidence that the canary fails more often than stable, as a decimal number.
	// The release is rolled back when it reaches threshold.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Evidence string `json:"evidence,omitempty"`

	// threshold is the evidence that rolls back: 1 / maxFalseRollback.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Threshold string `json:"threshold,omitempty"`

	// promotionEvidence is the evidence, in the present step, that the canary does not fail
	// more often than stable by spec.analysis.tolerance or more, as a decimal number. Only in
	// the last step, and only where spec.analysis.onConclusive is Promote.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	PromotionEvidence string `json:"promotionEvidence,omitempty"`

	// promotionThreshold is the evidence that promotes: 1 / maxBadPromotion.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	PromotionThreshold string `json:"promotionThreshold,omitempty"`

	// decidingMetric is the metric that weighs most in evidence: failures, latency, or the
	// name of one of your metrics.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DecidingMetric string `json:"decidingMetric,omitempty"`

	// minDetectableEffect is how much more often than stable the canary would have to fail
	// for half of such canaries to have been rolled back by now, such as "0.8pp".
	// Unset while none would.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	MinDetectableEffect string `json:"minDetectableEffect,omitempty"`

	// canaryRequests counts the canary's requests of this release that were judged.
	// +optional
	CanaryRequests int64 `json:"canaryRequests,omitempty"`

	// canaryFailures counts those of canaryRequests that failed.
	// +optional
	CanaryFailures int64 `json:"canaryFailures,omitempty"`

	// stableRequests counts stable's requests of this release that were judged.
	// +optional
	StableRequests int64 `json:"stableRequests,omitempty"`

	// stableFailures counts those of stableRequests that failed.
	// +optional
	StableFailures int64 `json:"stableFailures,omitempty"`

	// lastWindowEnd is the end of the last window of measurement that was judged.
	// No window is judged twice.
	// +optional
	LastWindowEnd *metav1.MicroTime `json:"lastWindowEnd,omitempty"`

	// lastValueAt is the time of the last number of your metrics that was judged while no
	// traffic could be measured.
	// +optional
	LastValueAt *metav1.MicroTime `json:"lastValueAt,omitempty"`

	// state of the test in a compact form that only Serin reads.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	State string `json:"state,omitempty"`
}

// HistoryEntry is one release that ended.
type HistoryEntry struct {
	// revision that was released.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// outcome is Promoted, RolledBack, Superseded, or Deployed for a version that came up
	// without steps: the first one, one of a workload that was scaled to zero, or one that was
	// rolled out bypassing Serin.
	// +required
	// +kubebuilder:validation:Enum=Promoted;RolledBack;Superseded;Deployed
	Outcome string `json:"outcome"`

	// reason is the reason of the decision that ended the release, as in status.decision. Unset
	// when no decision ended it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message says why, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// startedAt is when the release began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// endedAt is when its outcome was settled.
	// +required
	EndedAt metav1.Time `json:"endedAt"`

	// interventions are the decisions of users that were carried out in this
	// release.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Interventions []Intervention `json:"interventions,omitempty"`
}
