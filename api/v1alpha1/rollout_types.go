// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Rollout releases every change of a workload's pod template step by step:
// traffic moves to the new version by weights, evidence from live traffic
// decides whether to go on, and a bad version is removed before users notice.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sro,categories=serin
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step.summary`
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.status.weight.observed`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name: must have at most 52 characters, since Serin derives names and labels from it; choose a shorter name"
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to release and how. The user owns it; Serin never writes it.
	// +required
	Spec RolloutSpec `json:"spec"`

	// status is what Serin observed and did. Do not edit it: Serin reads its own decisions
	// and evidence from it.
	// +optional
	Status RolloutStatus `json:"status,omitempty"`
}

// RolloutList is a list of Rollouts.
//
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}

// RolloutSpec says what is released and how.
//
// +kubebuilder:validation:XValidation:rule="has(self.workloadRef) != has(self.services)",message="spec: needs exactly one of workloadRef and services; remove or add one"
// +kubebuilder:validation:XValidation:rule="has(self.workloadRef) == has(oldSelf.workloadRef)",message="spec.workloadRef: can't be added or removed; delete this Rollout and create another one"
// +kubebuilder:validation:XValidation:rule="!has(self.trafficDistribution) || has(self.workloadRef)",message="spec.trafficDistribution: needs a workloadRef, since Serin does not make the Services of spec.services; set it on those instead"
// +kubebuilder:validation:XValidation:rule="!has(self.configuration) || has(self.workloadRef)",message="spec.configuration: needs a workloadRef, since Serin does not make the pods behind spec.services; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy.blueGreen) || !has(self.strategy.blueGreen.previewService) || has(self.workloadRef) && self.workloadRef.kind == 'Deployment'",message="spec.strategy.blueGreen.previewService: needs a workloadRef of the kind Deployment; with spec.services, the canary's Service is the preview; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy.blueGreen) || !has(self.strategy.blueGreen.previewService) || !(self.strategy.blueGreen.previewService in [self.service, self.service + '-stable', self.service + '-canary'])",message="spec.strategy.blueGreen.previewService: must be another Service than spec.service and than '<service>-stable' and '<service>-canary', which Serin makes; name another one"
type RolloutSpec struct {
	// workloadRef names the workload in the same namespace whose template
	// changes are released. Only one Rollout may name a workload. It can't be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.workloadRef: can't be changed; delete this Rollout and create one for the other workload"
	WorkloadRef WorkloadReference `json:"workloadRef,omitzero"`

	// services are two Services that you keep yourself, with their pods, instead of a
	// workloadRef: traffic moves from one to the other. A release begins when the canary's
	// Service has ready pods that were not released before. To release the next version, name
	// the promoted Service as stable and another one as canary.
	// +optional
	Services *ServicePair `json:"services,omitempty"`

	// service is the name of the root Service in the same namespace: the one that
	// clients call. Its selector must select the workload's pods. Serin creates
	// "<service>-stable" and "<service>-canary" while a release is in
	// progress, which is why the name has at most 56 characters. It can't be changed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=56
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.service: can't be changed; delete this Rollout and create one for the other Service"
	Service string `json:"service"`

	// configuration makes the contents of ConfigMaps and Secrets part of a version: changes of
	// them are released step by step too, and each version keeps its own content, which a
	// rollback restores. It needs a workloadRef. When unset, a change of a ConfigMap or Secret
	// reaches the pods of both versions, as it does without Serin.
	// +optional
	Configuration *Configuration `json:"configuration,omitempty"`

	// router is what moves the traffic: nginx (Serin's own proxies), gatewayAPI or istio
	// (routes of a gateway or mesh), smi (a service mesh that serves TrafficSplits) or none.
	// With none, the canary gets the share of its pods among all pods behind the root Service,
	// and with BlueGreen that Service selects the pods of one version. When unset, the
	// operator's default is used. A router that the operator does not offer is refused, as the
	// condition TrafficRouted then says; no other one is used in its place.
	// +optional
	Router RouterName `json:"router,omitempty"`

	// routeRefs name routes of yours, in the same namespace, at most 16. While a release is in
	// progress, the router gatewayAPI or istio replaces the root Service in them by the
	// versions; afterwards it restores them. When empty, such a router makes a route for the
	// root Service, which a mesh follows. Other routers refuse them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	RouteRefs []RouteReference `json:"routeRefs,omitempty"`

	// sessionAffinity keeps clients, by a cookie, on the version that answered them first, as
	// long as the release lasts and that version has a weight above 0. Weights are then the
	// shares of new clients. The router nginx offers it, and gatewayAPI where the routes of the
	// cluster have the field sessionPersistence, for gateways that honour it. When unset, each
	// request is drawn independently.
	// +optional
	SessionAffinity *SessionAffinity `json:"sessionAffinity,omitempty"`

	// proxyPods is how the pods of the router nginx run: where, how many and with which
	// resources. A field that is unset is as the operator gives it to all proxies. A change
	// holds at once, also in the middle of a release: the proxies are replaced one at a time,
	// and no request is lost. Other routers have no proxies and ignore it.
	// +optional
	ProxyPods *splitv1.ProxyPods `json:"proxyPods,omitempty"`

	// trafficDistribution is spec.trafficDistribution of the Services that Serin makes for
	// the two versions: which endpoints clients prefer, such as those in their own zone.
	// It needs a workloadRef. When unset, the value of the root Service is copied. If the
	// API server refuses the value, the condition Ready says so, and nothing is released.
	// +optional
	TrafficDistribution *TrafficDistribution `json:"trafficDistribution,omitempty"`

	// strategy is how traffic moves to a new version.
	// +required
	Strategy Strategy `json:"strategy"`

	// schedule says when traffic may move to a new version. Rolling back is always
	// allowed. When unset, traffic may move at any time.
	// +optional
	Schedule *Schedule `json:"schedule,omitempty"`

	// analysis sets when the evidence from live traffic is good enough to go on and bad
	// enough to roll back. When unset, the canary's failures are compared with those of
	// stable, with the default of each field.
	// +optional
	Analysis *Analysis `json:"analysis,omitempty"`

	// control is what a user decides about the release of one revision. It is
	// carried out once; to decide again, change one of its fields. A user who changes
	// it needs the verb "promote" on this Rollout.
	// +optional
	Control *Control `json:"control,omitempty"`

	// hooks are HTTP endpoints, at most 8, that are called before the release goes on, or
	// notified how it ended.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Hooks []Hook `json:"hooks,omitempty"`

	// notifications are HTTP endpoints, at most 8, that are notified about the release. They
	// never hold it up.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Notifications []Notification `json:"notifications,omitempty"`

	// paused stops new steps while true: traffic stays where it is and the
	// evidence is still watched, so that a bad version is rolled back all the
	// same. Default false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// progressDeadline is how long the pods of a step may take to become ready,
	// and the weight to be programmed, before the release is rolled back. It
	// counts from the start of the step; restarts of containers do not reset it,
	// and time held or paused does not count. Default 10m.
	// +optional
	// +kubebuilder:default="10m"
	ProgressDeadline Duration `json:"progressDeadline,omitempty"`

	// rollbackWindow lets a Rollout return to one of its latest promoted versions without
	// steps. When unset, every change takes the steps.
	// +optional
	RollbackWindow *RollbackWindow `json:"rollbackWindow,omitempty"`

	// historyLimit is how many ended releases status.history keeps, 1 to 20. Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// RollbackWindow says which versions a Rollout may return to without steps.
type RollbackWindow struct {
	// revisions is how many of the latest promoted versions the Rollout may return to without
	// steps, 0 to 10: a template that equals one of theirs gets all traffic as soon as its pods
	// are available. With 0, every change takes the steps.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Revisions int32 `json:"revisions"`
}

// ServicePair names the Services of two versions, in the namespace of the Rollout.
//
// +kubebuilder:validation:XValidation:rule="self.stable != self.canary",message="spec.services: stable and canary must be two Services; name another one"
type ServicePair struct {
	// stable is the Service that has the traffic when a release begins.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Stable string `json:"stable"`

	// canary is the Service to which the traffic moves step by step.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Canary string `json:"canary"`
}

// RouteKind is the kind of a route.
//
// +kubebuilder:validation:Enum=HTTPRoute;GRPCRoute;TCPRoute;TLSRoute;UDPRoute;VirtualService
type RouteKind string

// RouteReference names a route in the namespace of the Rollout.
//
// +kubebuilder:validation:XValidation:rule="!has(self.section) || self.kind == 'VirtualService'",message="spec.routeRefs: only a VirtualService has sections; remove section"
type RouteReference struct {
	// kind of the route: HTTPRoute, GRPCRoute, TCPRoute, TLSRoute or UDPRoute for the router
	// gatewayAPI, VirtualService for istio.
	// +required
	Kind RouteKind `json:"kind"`

	// name of the route.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// section is the name of the single HTTP route within a VirtualService that is changed.
	// When unset, every HTTP route in it that sends requests to the root Service is changed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^,:/\s]+$`
	Section string `json:"section,omitempty"`
}

// What a Rollout may name as its workload.
const (
	KindDeployment    = "Deployment"
	KindCanaryRelease = "CanaryRelease"
)

// WorkloadReference names a workload in the namespace of the Rollout.
//
// +kubebuilder:validation:XValidation:rule="self.kind != 'Deployment' || self.apiVersion == 'apps/v1'",message="spec.workloadRef.apiVersion: only apps/v1 is supported; write apps/v1"
// +kubebuilder:validation:XValidation:rule="self.kind != 'CanaryRelease' || self.apiVersion == 'serin.dev/v1alpha1'",message="spec.workloadRef.apiVersion: write serin.dev/v1alpha1 for a CanaryRelease"
type WorkloadReference struct {
	// apiVersion of the workload: apps/v1 for a Deployment, serin.dev/v1alpha1 for a
	// CanaryRelease.
	// +required
	// +kubebuilder:validation:MaxLength=64
	APIVersion string `json:"apiVersion"`

	// kind of the workload: Deployment or CanaryRelease. The spec.delegation of a
	// CanaryRelease has to name this Rollout. StatefulSets and DaemonSets are refused:
	// their controllers replace pods in place, so that the old pods can't all stay until
	// the new version has proved itself.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self in ['Deployment', 'CanaryRelease']",message="spec.workloadRef.kind: only Deployment and CanaryRelease are supported; the controllers of other kinds, such as StatefulSet and DaemonSet, replace pods in place, so that the old ones could not stay until the new version has proved itself"
	Kind string `json:"kind"`

	// name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// TrafficDistribution is a preference for some endpoints of a Service (KEP-4444).
//
//	PreferSameZone, PreferClose  those in the zone of the client
//	PreferSameNode               those on the node of the client, then those in its zone
//	<domain>/<name>              what that implementation says
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self in ['PreferSameZone', 'PreferSameNode', 'PreferClose'] || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="spec.trafficDistribution: write PreferSameZone, PreferSameNode or PreferClose, or the value of another implementation as <domain>/<name>"
type TrafficDistribution string

// RouterName names an implementation that programs the weights of a TrafficSplit.
//
// +kubebuilder:validation:Enum=nginx;gatewayAPI;istio;smi;none
type RouterName string

// Routers that a Rollout may name.
const (
	// RouterNginx is Serin's own proxy: traffic goes through it only while a
	// release is in progress.
	RouterNginx RouterName = "nginx"
	// RouterGatewayAPI steers routes of the Gateway API.
	RouterGatewayAPI RouterName = "gatewayAPI"
	// RouterIstio steers VirtualServices.
	RouterIstio RouterName = "istio"
	// RouterSMI leaves the TrafficSplit to a service mesh.
	RouterSMI RouterName = "smi"
	// RouterNone sends no traffic through proxies: kube-proxy spreads the requests over the
	// pods of both versions, or with BlueGreen over those that the root Service selects.
	RouterNone RouterName = "none"
)

// SessionAffinity is how clients stay with a version.
type SessionAffinity struct {
	// cookieName is the name of the cookie: a letter followed by letters, digits and _, at most
	// 64 characters. The app must not use a cookie of that name. With the router gatewayAPI the
	// name of the gateway's session begins with it.
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_]{0,63}$`
	// +kubebuilder:validation:MaxLength=64
	CookieName string `json:"cookieName"`

	// maxAge is how long a client stays with its version: whole seconds from 1s to 8760h. When
	// unset, a client stays for as long as its browser keeps session cookies.
	// +optional
	MaxAge Duration `json:"maxAge,omitempty"`
}

// Configuration says which contents belong to a version, besides the pod template.
type Configuration struct {
	// kinds of objects whose contents belong to a version: ConfigMap, Secret. A
	// change of the content of such an object that the workload's template refers to
	// is released like a change of the template itself. The operator must be allowed
	// to read Secrets in this namespace; see the value configuration.secretNamespaces
	// of its chart.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Kinds []ConfigurationKind `json:"kinds"`

	// except names objects, at most 32, whose changes reach all pods at once, as they do
	// without Serin: feature flags, or files that the app reloads by itself.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Except []ConfigurationReference `json:"except,omitempty"`
}

// ConfigurationKind is the kind of an object that holds configuration.
//
// +kubebuilder:validation:Enum=ConfigMap;Secret
type ConfigurationKind string

// Kinds of objects that hold configuration.
const (
	// ConfigurationConfigMap is a ConfigMap.
	ConfigurationConfigMap ConfigurationKind = "ConfigMap"
	// ConfigurationSecret is a Secret.
	ConfigurationSecret ConfigurationKind = "Secret"
)

// ConfigurationReference names an object in the namespace of the Rollout.
type ConfigurationReference struct {
	// kind of the object: ConfigMap or Secret.
	// +required
	Kind ConfigurationKind `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ConfigurationStatus is the content of one object that was last made part of a
// version.
type ConfigurationStatus struct {
	// kind of the object: ConfigMap or Secret.
	// +required
	Kind ConfigurationKind `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// copy is the name of the immutable object that keeps the content. If the workload's
	// template names another copy, the workload was set back to an earlier version.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Copy string `json:"copy"`
}
