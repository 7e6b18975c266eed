// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names that Serin puts on objects of other kinds.
const (
	// AnnotationRollout on a Deployment names the Rollout that manages it. The
	// admission policy of the chart pauses a Deployment that carries it in the very
	// write that changes its template.
	AnnotationRollout = "serin.dev/rollout"
	// AnnotationResume on a Deployment, when "true", lets a user resume or take it over in the
	// middle of a release, which the admission policy undoes otherwise.
	AnnotationResume = "serin.dev/resume"
	// LabelRollout on an object that Serin made names the Rollout it was made for.
	LabelRollout = "serin.dev/rollout"
	// LabelPromotion on a ReplicaSet is the promotion for which it was handed over to its
	// Deployment: when that was decided, in microseconds of Unix time.
	LabelPromotion = "serin.dev/promotion"
	// AnnotationRejected on a ReplicaSet says why its version was rolled back: the reason and the
	// message of that decision, with ": " between them. A restored backup has no other record of it.
	AnnotationRejected = "serin.dev/rejected"
	// AnnotationRolloutUID on an object that Serin made is the UID of that Rollout:
	// an object of the same name that it did not make is never taken for its own.
	// There is no owner reference, because a Rollout that is deleted in the
	// foreground would lose its canary while users still call it.
	AnnotationRolloutUID = "serin.dev/rollout-uid"
	// LabelRole on a backend Service or ReplicaSet says which version it serves:
	// RoleStable or RoleCanary.
	LabelRole = "serin.dev/role"
	// RoleStable is the version that is known to be good.
	RoleStable = "stable"
	// RoleCanary is the version that is being released.
	RoleCanary = "canary"
	// RoleConfiguration is the role of an immutable copy of a ConfigMap or Secret.
	RoleConfiguration = "configuration"
	// AnnotationConfiguration on a pod says which copies its ConfigMaps and Secrets
	// are read from; the admission policy of the chart puts their names in. On a copy
	// it names the object that was copied.
	AnnotationConfiguration = "serin.dev/configuration"
	// AnnotationAllowedHosts on a Secret names the hosts, separated by commas, to which
	// requests may be sent that carry its content or are signed with it.
	AnnotationAllowedHosts = "serin.dev/allowed-hosts"
	// Finalizer on a Rollout lets Serin take everything back before it is gone.
	Finalizer = "serin.dev/rollout"
	// FieldManager is the owner of the fields that the Rollout controller applies.
	FieldManager = "serin-rollout"
)

// Condition types of a Rollout.
const (
	// ConditionReady is True when the workload runs what Git says, on stable
	// traffic, and nothing is left to do. Its message is the one sentence that
	// explains the state.
	ConditionReady = "Ready"
	// ConditionProgressing is True while a release is being carried out.
	ConditionProgressing = "Progressing"
	// ConditionTrafficRouted is True when the weight that Serin requested is the
	// weight that the router reports.
	ConditionTrafficRouted = "TrafficRouted"
	// ConditionAnalysisPassed is the verdict on the present step: Unknown while
	// the evidence is inconclusive.
	ConditionAnalysisPassed = "AnalysisPassed"
	// ConditionPaused is True while spec.paused stops new steps.
	ConditionPaused = "Paused"
	// ConditionUnguarded is present and True while nothing pauses the Deployment in the write
	// that changes its template, so that it stays paused between releases.
	ConditionUnguarded = "Unguarded"
	// ConditionReconciling is present and True while there is work in progress
	// (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present and True when Serin can't go on until a user
	// changes something (kstatus).
	ConditionStalled = "Stalled"
)

// Reason is the CamelCase reason of a condition.
type Reason = string

// Reasons of the conditions of a Rollout.
const (
	// ReasonStable: the workload runs the stable version and nothing is in progress.
	ReasonStable Reason = "Stable"
	// ReasonDeploying: the first version, or one that Serin does not release, is
	// being brought up by the Deployment controller.
	ReasonDeploying Reason = "Deploying"
	// ReasonPreparing: the traffic is being put under control before the canary exists.
	ReasonPreparing Reason = "Preparing"
	// ReasonWaitingForPods: the pods of the step are not ready yet.
	ReasonWaitingForPods Reason = "WaitingForPods"
	// ReasonWaitingForTraffic: the router has not confirmed the weight yet.
	ReasonWaitingForTraffic Reason = "WaitingForTraffic"
	// ReasonHolding: the weight is programmed and the step is held.
	ReasonHolding Reason = "Holding"
	// ReasonWaitingForEvidence: the hold is over but the evidence is inconclusive.
	ReasonWaitingForEvidence Reason = "WaitingForEvidence"
	// ReasonWaitingForApproval: the step waits for the approval of a user or a hook.
	ReasonWaitingForApproval Reason = "WaitingForApproval"
	// ReasonWaitingForSchedule: a window is closed, a freeze is in force, or the time
	// of the step has not come.
	ReasonWaitingForSchedule Reason = "WaitingForSchedule"
	// ReasonWaitingForHook: a hook has not approved yet.
	ReasonWaitingForHook Reason = "WaitingForHook"
	// ReasonAnalysisFailed: the analysis failed and spec.strategy.onFailure leaves it
	// to a user what to do.
	ReasonAnalysisFailed Reason = "AnalysisFailed"
	// ReasonAborted: a user rolled back.
	ReasonAborted Reason = "Aborted"
	// ReasonHookRefused: a hook refused the release.
	ReasonHookRefused Reason = "HookRefused"
	// ReasonHookTimedOut: a hook did not approve in time.
	ReasonHookTimedOut Reason = "HookTimedOut"
	// ReasonControlIgnored: spec.control could not be carried out.
	ReasonControlIgnored Reason = "ControlIgnored"
	// ReasonPaused: spec.paused is true.
	ReasonPaused Reason = "Paused"
	// ReasonPromoting: the canary is being made stable.
	ReasonPromoting Reason = "Promoting"
	// ReasonRollingBack: the canary is being removed.
	ReasonRollingBack Reason = "RollingBack"
	// ReasonRolledBack: the canary was removed; the workload stays paused until its
	// template changes.
	ReasonRolledBack Reason = "RolledBack"
	// ReasonSuperseded: the template changed again during a release.
	ReasonSuperseded Reason = "Superseded"
	// ReasonCleaningUp: traffic returns to the root Service.
	ReasonCleaningUp Reason = "CleaningUp"
	// ReasonDeleting: the Rollout is being deleted and gives everything back.
	ReasonDeleting Reason = "Deleting"
	// ReasonWorkloadNotFound: spec.workloadRef names a workload that does not exist.
	ReasonWorkloadNotFound Reason = "WorkloadNotFound"
	// ReasonServiceNotFound: spec.service names a Service that does not exist.
	ReasonServiceNotFound Reason = "ServiceNotFound"
	// ReasonInvalidService: spec.service names a Service that can't be split, or
	// spec.strategy.blueGreen.previewService one that can't lead to the canary.
	ReasonInvalidService Reason = "InvalidService"
	// ReasonInvalidSpec: a field of the spec can't be used.
	ReasonInvalidSpec Reason = "InvalidSpec"
	// ReasonConfigurationUnavailable: spec.configuration can't be honoured here.
	ReasonConfigurationUnavailable Reason = "ConfigurationUnavailable"
	// ReasonConfigurationChanged: another content of a ConfigMap or Secret is made
	// part of the workload's template.
	ReasonConfigurationChanged Reason = "ConfigurationChanged"
	// ReasonConflict: another object already claims the workload, the Service or a
	// name that Serin needs.
	ReasonConflict Reason = "Conflict"
	// ReasonRouterUnavailable: the operator does not offer the router.
	ReasonRouterUnavailable Reason = "RouterUnavailable"
	// ReasonRouterRefused: the router refused the TrafficSplit.
	ReasonRouterRefused Reason = "RouterRefused"
	// ReasonNothingPauses: no admission policy or webhook pauses the Deployment.
	ReasonNothingPauses Reason = "NothingPauses"
	// ReasonUnguardedChange: a change of the template was rolled out bypassing Serin.
	ReasonUnguardedChange Reason = "UnguardedChange"
	// ReasonProgressDeadlineExceeded: a step took longer than spec.progressDeadline
	// to get ready.
	ReasonProgressDeadlineExceeded Reason = "ProgressDeadlineExceeded"
	// ReasonCanaryUnavailable: no pod of the canary was available while it got traffic.
	ReasonCanaryUnavailable Reason = "CanaryUnavailable"
	// ReasonStableLost: the ReplicaSet of the stable version was deleted in the
	// middle of a release, so that there is nothing to return to.
	ReasonStableLost Reason = "StableLost"
	// ReasonObservationFailed: something that is needed to decide could not be read.
	ReasonObservationFailed Reason = "ObservationFailed"
	// ReasonProgrammed: the weight requested is the live weight.
	ReasonProgrammed Reason = "Programmed"
	// ReasonNoTrafficSplit: there is no TrafficSplit; traffic flows as without Serin.
	ReasonNoTrafficSplit Reason = "NoTrafficSplit"
	// ReasonNotMeasured: nothing measures the traffic.
	ReasonNotMeasured Reason = "NotMeasured"
	// ReasonNoRelease: there is no release in progress.
	ReasonNoRelease Reason = "NoRelease"
)

// Outcomes of a release in the history of a Rollout.
const (
	OutcomePromoted   = "Promoted"
	OutcomeRolledBack = "RolledBack"
	OutcomeSuperseded = "Superseded"
	// OutcomeDeployed is a version that came up without steps: the first one, one of
	// a workload that was scaled to zero, or one that was rolled out bypassing Serin.
	OutcomeDeployed = "Deployed"
)
