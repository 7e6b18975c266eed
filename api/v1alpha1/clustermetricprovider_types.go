// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterMetricProvider is a metrics system that Rollouts of many namespaces share. A metric
// that names it by providerRef has no address and no credentials of its own: only cluster
// admins and the operator know them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=serin
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.namespaceSelector`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterMetricProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is where the system is and who may use it. A release that is in progress
	// uses a change at once.
	// +required
	Spec ClusterMetricProviderSpec `json:"spec"`
}

// ClusterMetricProviderList is a list of ClusterMetricProviders.
//
// +kubebuilder:object:root=true
type ClusterMetricProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterMetricProvider `json:"items"`
}

// ClusterMetricProviderSpec is where a metrics system is and who may use it.
//
// +kubebuilder:validation:XValidation:rule="has(self.address) || !(self.type in ['prometheus', 'graphite', 'influxDB'])",message="address: this type has no default; add it"
// +kubebuilder:validation:XValidation:rule="has(self.credentialsRef) || self.type in ['prometheus', 'graphite']",message="credentialsRef: this type needs credentials; add it"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceLabel) || self.type == 'prometheus'",message="namespaceLabel: is for the type prometheus; remove it"
type ClusterMetricProviderSpec struct {
	// type of the system: prometheus, datadog, cloudWatch, newRelic, graphite or influxDB.
	// +required
	// +kubebuilder:validation:Enum=prometheus;datadog;cloudWatch;newRelic;graphite;influxDB
	Type ProviderType `json:"type"`

	// address of the system. When unset, datadog, cloudWatch and newRelic have a default; the
	// other types need one. It may be an address that the chart closes to tenants, such as one
	// in outbound.deniedHosts or outbound.deniedCIDRs.
	// +optional
	Address URL `json:"address,omitempty"`

	// credentialsRef names a Secret in the namespace of the operator, with the keys that a
	// metric of this type needs. The annotation serin.dev/allowed-hosts of the Secret has to
	// name the host of the address, and the operator must be allowed to read the Secret
	// (outbound.providerSecrets of the chart). Required unless the type is prometheus or
	// graphite.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`

	// namespaceSelector chooses, by their labels, the namespaces whose Rollouts may use the
	// system. When unset, all may.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// namespaceLabel is the label to which Serin confines the PromQL of a tenant: each selector
	// gets it, with the namespace of the Rollout as its value. Queries of a
	// ClusterAnalysisTemplate are sent as they are. Only for the type prometheus. Default
	// namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	NamespaceLabel string `json:"namespaceLabel,omitempty"`
}
