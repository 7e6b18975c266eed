// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnalysisResult is what was measured for the Rollout of the same name, which owns it.
// Serin makes it when a release is measured. It keeps the recordings of the latest
// releases, at most ten of 64 KiB each, and the results of the last release that had
// metrics: at most 16 metrics with 12 measurements each, which is less than 64 KiB.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=serin
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Metrics",type=string,JSONPath=`.status.metrics[*].name`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AnalysisResult struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what was measured. Only Serin writes it.
	// +optional
	Status AnalysisResultStatus `json:"status,omitempty"`
}

// AnalysisResultList is a list of AnalysisResults.
//
// +kubebuilder:object:root=true
type AnalysisResultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AnalysisResult `json:"items"`
}

// Bounds of an AnalysisResult.
const (
	// MaxResultMetrics is how many metrics a release can have in all.
	MaxResultMetrics = 16
	// MaxMeasurements is how many measurements of a metric are kept.
	MaxMeasurements = 12
	// MaxRecordings is how many recordings are kept.
	MaxRecordings = 10
)

// AnalysisResultStatus is what was measured.
type AnalysisResultStatus struct {
	// revision of the canary that was measured.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`

	// message says what is wrong with the metrics of the Rollout, such as a template
	// that does not exist. Empty when nothing is.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// metrics that were measured.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Metrics []MetricResult `json:"metrics,omitempty"`

	// recordings are what was measured and judged in the latest releases, keyed by
	// "<revision>.<Unix seconds at which the release began>": lines of JSON, compressed by
	// gzip, in base64. "kubectl traffic rollout record" prints them. They are a map, so that a
	// new recording can be written without the others.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	Recordings map[string]Recording `json:"recordings,omitempty"`
}

// Recording is one release, window by window, in a compact form.
//
// +kubebuilder:validation:MaxLength=65536
type Recording string

// MetricResult is what was measured of one metric.
type MetricResult struct {
	// name of the metric.
	// +required
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// dryRun is true when the metric has no influence on the release.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// measured is how many measurements of the release gave a number or a window.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Measured int32 `json:"measured"`

	// missing is how many measurements of the release gave none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Missing int32 `json:"missing"`

	// message says why the latest measurement is missing. It contains no text from the measured
	// system. Empty when the measurement is there.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// measurements are the latest ones, oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=12
	Measurements []Measurement `json:"measurements,omitempty"`
}

// Measurement is one measurement.
type Measurement struct {
	// time that the measurement is about; for a window, its end.
	// +required
	Time metav1.MicroTime `json:"time"`

	// value is the number that was measured, for a metric that is not compared.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`

	// canary is what was counted of the canary in the window, for a metric that is compared.
	// +optional
	Canary *ArmCount `json:"canary,omitempty"`
	// stable is what was counted of stable in the same window.
	// +optional
	Stable *ArmCount `json:"stable,omitempty"`

	// reason says in one CamelCase word why there is no value. Empty when there is one.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Reason string `json:"reason,omitempty"`
}

// ArmCount is what was counted of one version.
type ArmCount struct {
	// requests in the window.
	// +required
	Requests int64 `json:"requests"`

	// failures among them.
	// +required
	Failures int64 `json:"failures"`
}
