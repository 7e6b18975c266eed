// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnalysisTemplate is a set of metrics that Rollouts of its namespace can use. What it
// asks a Prometheus for is confined to that namespace.
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

// ClusterAnalysisTemplate is a set of metrics that Rollouts of every namespace can use.
// Its queries are trusted: to keep a release to its own namespace, have it in the query
// by an argument with field: Namespace. Secrets and Jobs are those of the namespace of
// the Rollout.
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
	// args are what the metrics name as {{args.NAME}}. A Rollout can give a value to
	// those that have none, or another value.
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

// MetricArgument is a value that metrics name as {{args.NAME}}. Without value, field and
// secretKeyRef, each use of the template has to give one.
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

	// field takes the value from the release: Name, Namespace or Service of the
	// Rollout; StableService, CanaryService, StableRevision or CanaryRevision; or
	// ArmService or ArmRevision, those of the version that is being measured: of the
	// canary, and in a comparison of each of both. The revision is the value of the
	// label pod-template-hash of its pods.
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

	// args are values for the template's arguments. One that the template does not
	// declare is a mistake.
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
