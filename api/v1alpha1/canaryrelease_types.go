// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// CanaryRelease tries other values of a Helm release on a share of its traffic. The
// pods that would change run together with those of the release until a user adopts them,
// which upgrades the Helm release, or deprecates them, which leaves no trace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=crel,categories=serin
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.spec.release`
// +kubebuilder:printcolumn:name="Version",type=integer,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Transition",type=string,JSONPath=`.spec.transition`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.spec.delegation.rollout`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name: must have at most 52 characters, since Serin derives names and labels from it; choose a shorter name"
type CanaryRelease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to try and on how much traffic. The user owns it; Serin writes only the
	// fields weight, transition, manifestDigest and by of spec.delegation.
	// +required
	Spec CanaryReleaseSpec `json:"spec"`

	// status is what Serin observed and did. It holds no value of the release.
	// +optional
	Status CanaryReleaseStatus `json:"status,omitempty"`
}

// CanaryReleaseList is a list of CanaryReleases.
//
// +kubebuilder:object:root=true
type CanaryReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CanaryRelease `json:"items"`
}

// CanaryReleaseSpec says what is tried and on how much traffic.
//
// +kubebuilder:validation:XValidation:rule="has(self.config) != has(self.configFrom)",message="spec: needs exactly one of config and configFrom; remove or add one"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.transition) || oldSelf.transition != 'Deprecated' || has(self.transition) && self.transition == 'Deprecated'",message="spec.transition: Deprecated is final; create another CanaryRelease to try again"
type CanaryReleaseSpec struct {
	// release is the name of the Helm release, in the same namespace. It can't be
	// changed; delete the CanaryRelease and create another one instead.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.release: can't be changed; delete this CanaryRelease and create one for the other release"
	Release string `json:"release"`

	// version is the revision of the Helm release that the canary is compared with, as
	// `helm history` counts them. It has to be the newest and deployed. When the
	// release is upgraded, rolled back or uninstalled meanwhile, the CanaryRelease is
	// deprecated. It can't be changed.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.version: can't be changed; delete this CanaryRelease and create one for the other revision"
	Version int32 `json:"version"`

	// path is the sub-chart that config is for: the names of sub-charts joined by "/",
	// such as "platform/web", by their aliases where they have one. When empty, the chart
	// itself. It can't be changed once it is set.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?(/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)*)?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.path: can't be changed; delete this CanaryRelease and create one for the other sub-chart"
	Path string `json:"path,omitempty"`

	// config holds the values to try, as YAML. They are merged over the values of the release
	// at path as `helm upgrade --reuse-values -f` would merge them. At most 64 KiB. Users who
	// may read the CanaryRelease can read them: use configFrom for secret values. When config
	// is changed, the canary is removed and made anew.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Config string `json:"config,omitempty"`

	// configFrom names the Secret that holds this YAML, instead of config.
	// +optional
	ConfigFrom *CanaryConfigSource `json:"configFrom,omitempty"`

	// services say how much of the traffic of each Service goes to the canary. When empty,
	// every Service that selects pods of the canary sends it 1 % on every port. Otherwise
	// a Service that is not named sends it nothing.
	// +optional
	// +listType=map
	// +listMapKey=service
	// +kubebuilder:validation:MaxItems=32
	Services []CanaryService `json:"services,omitempty"`

	// resources of the container of each proxy that shares the traffic. A quantity that is
	// unset is the one that the operator gives to its proxies.
	// +optional
	Resources *splitv1.ProxyResources `json:"resources,omitempty"`

	// replicas is the number of pods of each of the canary's workloads, 1 to 10000. When unset,
	// it is the largest weight's share of the replicas of the release's Deployment, rounded up,
	// at least 1. For an adoption, the canary gets as many pods as the Deployment has.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// transition ends the CanaryRelease. Adopted sends all traffic to the canary, upgrades
	// the Helm release with config and hands the canary's pods over to it. Deprecated
	// sends all traffic back and removes the canary; it is final. When empty, the canary
	// stays.
	// +optional
	Transition CanaryTransition `json:"transition,omitempty"`

	// delegation lets a Rollout decide how much traffic goes to the canary and how the
	// CanaryRelease ends. The Rollout names the CanaryRelease in spec.workloadRef, and has
	// to be named here, so that no Rollout decides without consent. A spec.transition that
	// a user sets takes precedence over what the Rollout decides. When unset, users
	// decide.
	// +optional
	Delegation *CanaryDelegation `json:"delegation,omitempty"`
}

// CanaryDelegation is what a Rollout decides about a CanaryRelease.
type CanaryDelegation struct {
	// rollout is the name of the Rollout, in the same namespace. You write it; the Rollout
	// writes the other fields. The canary gets no traffic until the Rollout gives it a
	// weight. To end the delegation, remove the whole field delegation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	Rollout string `json:"rollout"`

	// weight is the canary's share in percent, on every port to which spec.services gives
	// a weight above 0. Ports with a weight of 0 there keep it. The Rollout writes this
	// field. When unset, 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`

	// transition is how the CanaryRelease ends: Adopted when the last step has passed,
	// Deprecated when the release was rolled back. The Rollout writes this field.
	// +optional
	Transition CanaryTransition `json:"transition,omitempty"`

	// manifestDigest is the value of status.manifestDigest that weight and transition are
	// meant for. A canary with other content gets no traffic, and is neither adopted nor
	// deprecated by them. The Rollout writes this field.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ManifestDigest string `json:"manifestDigest,omitempty"`

	// by is the Rollout that wrote weight, transition and manifestDigest. They have no
	// effect when rollout names another one.
	// +optional
	// +kubebuilder:validation:MaxLength=52
	By string `json:"by,omitempty"`
}

// CanaryTransition is how a CanaryRelease ends.
//
// +kubebuilder:validation:Enum="";Adopted;Deprecated
type CanaryTransition string

// How a CanaryRelease ends.
const (
	// CanaryTransitionNone: the canary stays.
	CanaryTransitionNone CanaryTransition = ""
	// CanaryTransitionAdopted: the release becomes what the canary is.
	CanaryTransitionAdopted CanaryTransition = "Adopted"
	// CanaryTransitionDeprecated: the canary goes and leaves no trace.
	CanaryTransitionDeprecated CanaryTransition = "Deprecated"
)

// CanaryConfigSource is where values are read from.
type CanaryConfigSource struct {
	// secretKeyRef is a key of a Secret in the same namespace. The ServiceAccount that
	// Helm is called as has to be allowed to read it.
	// +required
	SecretKeyRef CanarySecretKey `json:"secretKeyRef"`
}

// CanarySecretKey is a key of a Secret.
type CanarySecretKey struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in the Secret, such as "values.yaml".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// CanaryService says how much of the traffic of one Service goes to the canary.
type CanaryService struct {
	// service is the name of a Service in the same namespace that selects pods of the canary.
	// At most 56 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=56
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Service string `json:"service"`

	// ports are those that send traffic to the canary. When empty, each port of the Service sends
	// it 1 %. Otherwise a port that is not named sends it nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Ports []CanaryPort `json:"ports,omitempty"`
}

// CanaryPort says how much of the traffic of one port goes to the canary.
type CanaryPort struct {
	// port is the number of the Service's port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// protocol is what clients speak on the port: HTTP, HTTPS, TCP or UDP. When unset, it is
	// what the Service says, by the transport and the appProtocol of the port, else by its
	// name. HTTP is shared request by request, HTTPS and TCP connection by connection, UDP
	// session by session.
	// +optional
	Protocol CanaryProtocol `json:"protocol,omitempty"`

	// config is what the proxy does with the port's traffic.
	// +optional
	Config CanaryPortConfig `json:"config,omitzero"`
}

// CanaryProtocol is what clients speak on a port.
//
// +kubebuilder:validation:Enum=HTTP;HTTPS;TCP;UDP
type CanaryProtocol string

// What clients speak on a port.
const (
	CanaryProtocolHTTP  CanaryProtocol = "HTTP"
	CanaryProtocolHTTPS CanaryProtocol = "HTTPS"
	CanaryProtocolTCP   CanaryProtocol = "TCP"
	CanaryProtocolUDP   CanaryProtocol = "UDP"
)

// CanaryPortConfig is what the proxy does with a port's traffic.
type CanaryPortConfig struct {
	// weight is the share of the canary in percent, from 0 (nothing) to 100 (all). When
	// unset, 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`
}
