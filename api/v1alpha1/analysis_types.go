// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Analysis sets when evidence is good enough to go on and bad enough to roll back.
type Analysis struct {
	// maxFalseRollback is the highest probability, per release, that a canary which fails no
	// more often than stable is rolled back by the comparison, however often Serin looks. It
	// holds as long as requests fail independently, or in groups of at most
	// maxCorrelatedFailures. A lower value is more careful and needs more requests to find a
	// bad version. More than 0%, at most 50%. Default 1%.
	// +optional
	// +kubebuilder:default="1%"
	MaxFalseRollback Percent `json:"maxFalseRollback,omitempty"`

	// tolerance is how many percentage points more often than stable the canary may fail
	// before it counts as worse. More than 0pp, at most 50pp. Default 0.5pp.
	// +optional
	// +kubebuilder:default="0.5pp"
	Tolerance PercentagePoints `json:"tolerance,omitempty"`

	// minRequests is the number of requests that each of the two versions must have
	// answered at the present weight before a step can end. Fewer is Inconclusive,
	// never a Pass. Ignored at weight 0, and for stable at weight 100. Default 50.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MinRequests *int32 `json:"minRequests,omitempty"`

	// minSuccessRate is the lowest share of the canary's requests that must succeed, whatever
	// stable does; a response with a status of 500 or more is a failure. Each measurement takes
	// at least 100 requests of a step. More than 0%. When unset, there is no absolute limit.
	// +optional
	MinSuccessRate Percent `json:"minSuccessRate,omitempty"`

	// maxLatency are upper limits for quantiles of the canary's latency. Each measurement takes
	// at least 100 requests of a step. When unset, there are none.
	// +optional
	// +listType=map
	// +listMapKey=quantile
	// +kubebuilder:validation:MaxItems=3
	MaxLatency []LatencyLimit `json:"maxLatency,omitempty"`

	// consecutiveFailureLimit is how many measurements in a row must miss one of the absolute
	// limits (minSuccessRate, maxLatency) before the release is rolled back, 1 to 100. The
	// comparison with stable does not use it. Default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ConsecutiveFailureLimit *int32 `json:"consecutiveFailureLimit,omitempty"`

	// onInconclusive says what happens when the hold of a step is over and the
	// evidence is still Inconclusive: Hold waits for more (the default), Promote
	// goes on, RollBack rolls back. Missing data is always Inconclusive.
	// +optional
	// +kubebuilder:default=Hold
	OnInconclusive InconclusivePolicy `json:"onInconclusive,omitempty"`

	// onConclusive says what happens when the evidence that the canary is no worse
	// suffices before the last step has been held to its end: Hold (the default)
	// holds it all the same. Promote gives the canary 95 % of the traffic at once;
	// stable keeps 5 %, and both are compared, until the step would have ended. It has
	// no effect on a last step with matches, a gate, or 95 % or more.
	// +optional
	// +kubebuilder:default=Hold
	OnConclusive ConclusivePolicy `json:"onConclusive,omitempty"`

	// maxBadPromotion is the highest probability, per release, that a canary which fails more
	// often than stable by tolerance or more is promoted before the end of its steps. At most
	// 50%; with 0%, none is promoted early. Default 1%.
	// +optional
	// +kubebuilder:default="1%"
	MaxBadPromotion Percent `json:"maxBadPromotion,omitempty"`

	// minEvidence is how long the canary must have been measured before it is promoted
	// ahead of its steps. Default 30s.
	// +optional
	// +kubebuilder:default="30s"
	MinEvidence Duration `json:"minEvidence,omitempty"`

	// startup sets how much is tolerated while a canary warms up. When unset, the
	// defaults of its fields apply.
	// +optional
	Startup *Startup `json:"startup,omitempty"`

	// maxCorrelatedFailures is the largest number of requests that fail or succeed together, as
	// those of one user or one batch do, 1 to 10000. The comparison then counts a group of that
	// size as one request, so that it needs more requests. When unset, it is estimated from the
	// requests of stable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxCorrelatedFailures *int32 `json:"maxCorrelatedFailures,omitempty"`

	// templateRefs name templates whose metrics are measured as well, at most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TemplateRefs []TemplateReference `json:"templateRefs,omitempty"`

	// args are the arguments that metrics use as {{args.NAME}}, at most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Args []MetricArgument `json:"args,omitempty"`

	// metrics are further metrics to measure, at most 8. Together with the metrics of the
	// templates there can be at most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Metrics []InlineMetric `json:"metrics,omitempty"`
}

// Startup sets how much is tolerated while a canary warms up.
type Startup struct {
	// for is the length of the warm-up, counted from the canary's first request, 0s to 10m. No
	// step ends during the warm-up. Default 15s.
	// +optional
	// +kubebuilder:default="15s"
	For Duration `json:"for,omitempty"`

	// tolerate is how many percentage points more often than stable the canary may fail during
	// the warm-up, 0pp to 90pp. Default 25pp.
	// +optional
	// +kubebuilder:default="25pp"
	Tolerate PercentagePoints `json:"tolerate,omitempty"`
}

// StepAnalysis changes settings of spec.analysis for one step. A field that is
// unset keeps the value of spec.analysis.
type StepAnalysis struct {
	// tolerance is how many percentage points more often than stable the canary may
	// fail in this step. More than 0pp, at most 50pp.
	// +optional
	Tolerance PercentagePoints `json:"tolerance,omitempty"`

	// minRequests is the number of requests that each of the two versions must have
	// answered before this step can end.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MinRequests *int32 `json:"minRequests,omitempty"`

	// onInconclusive says what happens when the hold of this step is over and the
	// evidence is still Inconclusive: Hold, Promote or RollBack.
	// +optional
	OnInconclusive InconclusivePolicy `json:"onInconclusive,omitempty"`
}

// LatencyLimit is an upper limit for one quantile of the canary's latency.
type LatencyLimit struct {
	// quantile is p50, p90 or p99.
	// +required
	// +kubebuilder:validation:Enum=p50;p90;p99
	Quantile string `json:"quantile"`

	// max is the upper limit of the quantile, such as 500ms. The time of a request is
	// measured from when it is sent to the version until the last byte of the answer.
	// Requests are counted in the buckets of a histogram, and a limit inside a bucket can
	// be undecided: prefer 1, 2, 3, 5 or 7.5 times a power of ten.
	// +required
	Max Duration `json:"max"`
}

// ConclusivePolicy says what to do with enough evidence ahead of time.
//
// +kubebuilder:validation:Enum=Hold;Promote
type ConclusivePolicy string

// What to do when the evidence for a canary suffices ahead of time.
const (
	// ConclusiveHold holds the last step to its end.
	ConclusiveHold ConclusivePolicy = "Hold"
	// ConclusivePromote promotes, but for a part that stable keeps until then.
	ConclusivePromote ConclusivePolicy = "Promote"
)

// InconclusivePolicy says what to do without enough evidence.
//
// +kubebuilder:validation:Enum=Hold;Promote;RollBack
type InconclusivePolicy string

// What to do when a step has been held long enough and the evidence is Inconclusive.
const (
	// InconclusiveHold waits for more evidence.
	InconclusiveHold InconclusivePolicy = "Hold"
	// InconclusivePromote goes on to the next step.
	InconclusivePromote InconclusivePolicy = "Promote"
	// InconclusiveRollBack rolls back.
	InconclusiveRollBack InconclusivePolicy = "RollBack"
)
