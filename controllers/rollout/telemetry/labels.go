// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"slices"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// other is the label of what is in no list, so that labels stay as many as the
// lists are long whatever a status says.
const other = "Other"

// states are the reasons of the condition Ready.
var states = []string{
	v1alpha1.ReasonStable, v1alpha1.ReasonDeploying, v1alpha1.ReasonPreparing, v1alpha1.ReasonWaitingForPods,
	v1alpha1.ReasonWaitingForTraffic, v1alpha1.ReasonHolding, v1alpha1.ReasonWaitingForEvidence,
	v1alpha1.ReasonWaitingForApproval, v1alpha1.ReasonWaitingForSchedule, v1alpha1.ReasonWaitingForHook,
	v1alpha1.ReasonAnalysisFailed, v1alpha1.ReasonPaused, v1alpha1.ReasonPromoting, v1alpha1.ReasonRollingBack,
	v1alpha1.ReasonRolledBack, v1alpha1.ReasonSuperseded, v1alpha1.ReasonCleaningUp, v1alpha1.ReasonDeleting,
	v1alpha1.ReasonWorkloadNotFound, v1alpha1.ReasonServiceNotFound, v1alpha1.ReasonInvalidService,
	v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonConflict, v1alpha1.ReasonRouterUnavailable, v1alpha1.ReasonStableLost,
	v1alpha1.ReasonUnguardedChange, v1alpha1.ReasonObservationFailed,
	v1alpha1.ReasonConfigurationChanged, v1alpha1.ReasonConfigurationUnavailable,
}

// outcomes of a release.
var outcomes = []string{
	v1alpha1.OutcomePromoted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded, v1alpha1.OutcomeDeployed,
}

// causes of a rollback. Those of an inconclusive analysis need
// spec.analysis.onInconclusive to be RollBack.
var causes = []string{
	string(judge.ReasonWorseThanStable), string(judge.ReasonLimitMissed), string(judge.ReasonRefusedByProxies), v1alpha1.ReasonAborted,
	v1alpha1.ReasonCanaryUnavailable, v1alpha1.ReasonProgressDeadlineExceeded,
	v1alpha1.ReasonHookRefused, v1alpha1.ReasonHookTimedOut, v1alpha1.ReasonRouterUnavailable,
	v1alpha1.ReasonDeprecated, v1alpha1.ReasonConflict,
	string(judge.ReasonNoTraffic), string(judge.ReasonNoStableTraffic), string(judge.ReasonTooFewRequests),
	string(judge.ReasonMissingData), string(judge.ReasonStaleData), string(judge.ReasonStartingUp),
	string(judge.ReasonSuspected), string(judge.ReasonLimitUnmeasured), string(judge.ReasonLimitUndecided),
	string(judge.ReasonLimitAtRisk), string(judge.ReasonLimitMissing),
}

// verdicts of the analysis.
var verdicts = []string{string(judge.Pass), string(judge.Fail), string(judge.Inconclusive)}

// interventions of users.
var interventions = []string{
	string(v1alpha1.ControlPromote), string(v1alpha1.ControlSkip), string(v1alpha1.ControlPromoteFull),
	string(v1alpha1.ControlAbort), string(v1alpha1.ControlRetry),
}

func oneOf(list []string, value string) string {
	if slices.Contains(list, value) {
		return value
	}
	return other
}
