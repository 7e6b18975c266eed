// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnalysisTemplate is a set of metrics that Rollouts in its namespace can use. Its Prometheus
// queries are confined to that namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=serin
// +kubebuilder:printcolumn:name="Metrics",type=string,JSONPath=`.spec.metrics[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AnalysisTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to measure. A release that is in progress uses a change at once.
	// +required
	Spec AnalysisTemplateSpec `json:"spec"`
}

// AnalysisTemplateList is a list of AnalysisTemplates.
//
// +kubebuilder:object:root=true
type AnalysisTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AnalysisTemplate `json:"items"`
}

// ClusterAnalysisTemplate is a set of metrics that Rollouts in every namespace can use. Its
// queries are trusted and not confined: to limit a query to the namespace of the release, use
// an argument with field: Namespace in it. Secrets and Jobs are those of the namespace of the
// Rollout.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=serin
// +kubebuilder:printcolumn:name="Metrics",type=string,JSONPath=`.spec.metrics[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterAnalysisTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to measure. A release that is in progress uses a change at once.
	// +required
	Spec AnalysisTemplateSpec `json:"spec"`
}

// ClusterAnalysisTemplateList is a list of ClusterAnalysisTemplates.
//
// +kubebuilder:object:root=true
type ClusterAnalysisTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterAnalysisTemplate `json:"items"`
}

// AnalysisTemplateSpec is what to measure.
type AnalysisTemplateSpec struct {
	// args are values that the metrics refer to as {{args.NAME}}. A Rollout can replace those
	// with a value, and has to give one to those with neither value, field nor secretKeyRef.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Args []MetricArgument `json:"args,omitempty"`

	// metrics that are measured.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Metrics []Metric `json:"metrics"`
}

// MetricArgument is a value that metrics refer to as {{args.NAME}}. If it has neither value,
// field nor secretKeyRef, each Rollout that uses the template has to give a value.
//
// +kubebuilder:validation:XValidation:rule="(has(self.value) ? 1 : 0) + (has(self.field) ? 1 : 0) + (has(self.secretKeyRef) ? 1 : 0) <= 1",message="value, field and secretKeyRef exclude each other; keep one of them"
type MetricArgument struct {
	// name of the argument.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9_]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// value that is used when the Rollout gives none.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Value *string `json:"value,omitempty"`

	// field takes the value from the release: Name, Namespace or Service of the Rollout;
	// StableService, CanaryService, StableRevision or CanaryRevision; or ArmService or
	// ArmRevision, which are those of the version that is being measured: the canary, and in a
	// comparison each of the two versions in turn. A revision is the value of the label
	// pod-template-hash of the version's pods.
	// +optional
	Field ReleaseField `json:"field,omitempty"`

	// secretKeyRef takes the value from a Secret in the namespace of the Rollout. It
	// can only be used in web.headers.
	// +optional
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`
}

// ReleaseField is what an argument can take from a release.
//
// +kubebuilder:validation:Enum=Name;Namespace;Service;StableService;CanaryService;StableRevision;CanaryRevision;ArmService;ArmRevision
type ReleaseField string

// Fields of a release.
const (
	FieldName           ReleaseField = "Name"
	FieldNamespace      ReleaseField = "Namespace"
	FieldService        ReleaseField = "Service"
	FieldStableService  ReleaseField = "StableService"
	FieldCanaryService  ReleaseField = "CanaryService"
	FieldStableRevision ReleaseField = "StableRevision"
	FieldCanaryRevision ReleaseField = "CanaryRevision"
	FieldArmService     ReleaseField = "ArmService"
	FieldArmRevision    ReleaseField = "ArmRevision"
)

// TemplateReference names a template and fills it in.
type TemplateReference struct {
	// name of the template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// kind of the template: AnalysisTemplate, in the namespace of the Rollout, or
	// ClusterAnalysisTemplate. Default AnalysisTemplate.
	// +optional
	// +kubebuilder:default=AnalysisTemplate
	// +kubebuilder:validation:Enum=AnalysisTemplate;ClusterAnalysisTemplate
	Kind string `json:"kind,omitempty"`

	// args are values for the arguments of the template. An argument that the template
	// does not declare is an error.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Args []ArgumentValue `json:"args,omitempty"`
}

// ArgumentValue is a value for an argument of a template.
type ArgumentValue struct {
	// name of the argument.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// value of the argument.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
}

// Kinds of templates.
const (
	KindAnalysisTemplate        = "AnalysisTemplate"
	KindClusterAnalysisTemplate = "ClusterAnalysisTemplate"
)

// Metric is one measurement that is made again and again while a release takes traffic.
// A plain number has to stay between min and max; counters are compared with those of
// stable; a Job has to succeed. What can't be measured is Inconclusive, never a Pass.
//
// +kubebuilder:validation:XValidation:rule="has(self.compare) == (has(self.provider.prometheus) && has(self.provider.prometheus.counters))",message="compare: belongs to provider.prometheus.counters; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.compare) || self.provider.type == 'job' ? !has(self.min) && !has(self.max) : has(self.min) || has(self.max)",message="min, max: a plain number needs one or both of them, and a comparison or a job none; add or remove them"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || double(self.min) <= double(self.max)",message="min: must not be greater than max; swap them"
type Metric struct {
	MetricSettings `json:",inline"`

	// provider says where and what to measure.
	// +required
	Provider MetricProvider `json:"provider"`
}

// InlineMetric is a Metric in a Rollout. It has only the providers that need no account
// elsewhere; use a template for the others.
//
// +kubebuilder:validation:XValidation:rule="has(self.compare) == (has(self.provider.prometheus) && has(self.provider.prometheus.counters))",message="compare: belongs to provider.prometheus.counters; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.compare) || self.provider.type == 'job' ? !has(self.min) && !has(self.max) : has(self.min) || has(self.max)",message="min, max: a plain number needs one or both of them, and a comparison or a job none; add or remove them"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || double(self.min) <= double(self.max)",message="min: must not be greater than max; swap them"
type InlineMetric struct {
	MetricSettings `json:",inline"`

	// provider says where and what to measure. Providers that need an account elsewhere
	// can be used in templates only.
	// +required
	Provider InlineProvider `json:"provider"`
}

// Full is the same metric with the type of those in templates.
func (m InlineMetric) Full() Metric {
	return Metric{MetricSettings: m.MetricSettings, Provider: MetricProvider{Type: m.Provider.Type, BasicProviders: m.Provider.BasicProviders}}
}

// MetricSettings are what all metrics have in common.
type MetricSettings struct {
	// name of the metric, unique among all metrics of a Rollout.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// min is the lowest acceptable number. When unset, there is none.
	// +optional
	Min Decimal `json:"min,omitempty"`

	// max is the highest acceptable number. When unset, there is none.
	// +optional
	Max Decimal `json:"max,omitempty"`

	// compare says how the canary's counters are compared with stable's.
	// +optional
	Compare *Comparison `json:"compare,omitempty"`

	// interval is the time from one measurement to the next, 5s to 1h. For a comparison it is
	// at most 50s: within longer windows, drift would not affect both versions alike. Default
	// 30s.
	// +optional
	// +kubebuilder:default="30s"
	Interval Duration `json:"interval,omitempty"`

	// consecutiveFailureLimit is how many measurements in a row must be outside min and max
	// before the release is rolled back, 1 to 100. A missing measurement neither counts nor
	// interrupts the row. A comparison does not use it. Default 3, and 1 for a job.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ConsecutiveFailureLimit *int32 `json:"consecutiveFailureLimit,omitempty"`

	// minSamples is how many numbers must have been measured in a step before the step can end,
	// 1 to 1000. A comparison uses spec.analysis.minRequests instead. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinSamples *int32 `json:"minSamples,omitempty"`

	// dryRun, when true, measures and reports the metric without any influence on the release.
	// Default false.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// Decimal is a number such as "0.99" or "-5". It is a string, so that every client reads the
// same number.
//
// +kubebuilder:validation:Pattern=`^-?[0-9]{1,15}(\.[0-9]{1,9})?$`
// +kubebuilder:validation:MaxLength=26
type Decimal string

// Comparison says how the counters of two versions are compared.
type Comparison struct {
	// better is Fewer, when what counters.failures counts is bad, as errors are, or
	// More, when it is good, as purchases are. Latency is always better when shorter.
	// Default Fewer.
	// +optional
	// +kubebuilder:default=Fewer
	// +kubebuilder:validation:Enum=Fewer;More
	Better Direction `json:"better,omitempty"`

	// weight of this metric's evidence, 1 to 100: the evidence of a release is the weighted
	// mean of all that is compared. The failures of the requests, which Serin compares in any
	// case, have the weight 10, and their latency 5. Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`

	// tolerance is how many percentage points worse than stable the canary may be. More than
	// 0pp, at most 50pp. When unset, that of spec.analysis applies.
	// +optional
	Tolerance PercentagePoints `json:"tolerance,omitempty"`
}

// Direction says which of two rates is better.
type Direction string

// Directions of a comparison.
const (
	BetterFewer Direction = "Fewer"
	BetterMore  Direction = "More"
)
