// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrafficSplit directs the traffic of a root Service to other Services by weight.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=trafficsplits,shortName=ts,categories=serin
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.service`,description="The root Service"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrafficSplit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the requested split.
	// +required
	Spec TrafficSplitSpec `json:"spec"`

	// status is the split that the router has programmed.
	// +optional
	Status TrafficSplitStatus `json:"status,omitempty"`
}

// TrafficSplitList is a list of TrafficSplits.
//
// +kubebuilder:object:root=true
type TrafficSplitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrafficSplit `json:"items"`
}

// TrafficSplitSpec is the requested split.
//
// +kubebuilder:validation:XValidation:rule="self.backends.all(b, b.service != self.service)",message="spec.backends: a split can't send traffic to its own root Service; name the Services of the individual versions"
// +kubebuilder:validation:XValidation:rule="self.backends.exists(b, b.weight > 0)",message="spec.backends: at least one weight must be above 0, or no request could be answered"
type TrafficSplitSpec struct {
	// service is the root Service that clients connect to: its name, or its fully
	// qualified domain name in the same namespace. It can't be changed; delete the
	// split and create one for the other Service instead.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.service: can't be changed; delete this TrafficSplit and create one for the other Service"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Service string `json:"service"`

	// backends are the Services that share the traffic. A backend that lacks a
	// port of the root Service gets none of that port's traffic. A backend that
	// does not exist yet gets no traffic. 1 to 32 backends.
	// +required
	// +listType=map
	// +listMapKey=service
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Backends []Backend `json:"backends"`

	// matches limit the split to requests that match at least one of the groups named, at most
	// 16. Requests that match none go to the pods that the root Service selects, or to
	// defaultBackend of the annotation serin.dev/routing. When empty, every request is split.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Matches []Match `json:"matches,omitempty"`
}

// Backend is a Service with its share of the traffic.
type Backend struct {
	// service is the name of a Service in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Service string `json:"service"`

	// weight is the backend's share relative to the sum of all weights: a whole number from 0
	// to 2147483647. 0 means no traffic.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Weight int32 `json:"weight"`

	// Invalid says why the backend could not be read; see UnmarshalJSON. It is not
	// part of the API.
	Invalid string `json:"-"`
}

// Match refers to a group of requests.
type Match struct {
	// apiGroup of the kind. Default specs.smi-spec.io.
	// +optional
	// +kubebuilder:validation:Enum=specs.smi-spec.io
	APIGroup *string `json:"apiGroup,omitempty"`

	// kind of the group: HTTPRouteGroup.
	// +required
	// +kubebuilder:validation:Enum=HTTPRouteGroup
	Kind string `json:"kind"`

	// name of the group in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// TrafficSplitStatus is the split that the router has programmed.
type TrafficSplitStatus struct {
	// conditions are Accepted (a router serves the split), ResolvedRefs (every
	// reference exists and fits) and Programmed (every proxy of the router serves
	// the generation in the condition's observedGeneration, and the root Service's
	// traffic goes through it).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// backends are the live weights, one entry for each of spec.backends.
	// Empty until the split is programmed for the first time.
	// +optional
	// +listType=map
	// +listMapKey=service
	// +kubebuilder:validation:MaxItems=32
	Backends []BackendStatus `json:"backends,omitempty"`

	// mirror is the live mirroring. Absent when no request is mirrored.
	// +optional
	Mirror *MirrorStatus `json:"mirror,omitempty"`

	// router is the name of the router that directs the split's traffic, or is withdrawing
	// from it. Unset when there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Router string `json:"router,omitempty"`

	// observedRouting is a digest of the annotation serin.dev/routing that the conditions are
	// about, besides their observedGeneration, which annotations do not change. Absent when
	// there was none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ObservedRouting string `json:"observedRouting,omitempty"`

	// confirmed is what the routes of a gateway or mesh ask for, and since when that is
	// confirmed. Absent while it is not, and for a router that has no routes.
	// +optional
	Confirmed *ConfirmedStatus `json:"confirmed,omitempty"`

	// proxies sums up what the router's own proxies report that they serve. Absent for a router
	// that has none.
	// +optional
	Proxies *ProxiesStatus `json:"proxies,omitempty"`
}

// BackendStatus is the live weight of one backend.
type BackendStatus struct {
	// service is the name of the backend.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Service string `json:"service"`

	// weight that is live. If ports have weights of their own, it is the largest of the
	// backend's weights on any port, so that 0 always means no traffic.
	// +required
	// +kubebuilder:validation:Minimum=0
	Weight int32 `json:"weight"`

	// ports are the live weights of each port of the root Service that the backend can take.
	// Absent if no port has weights of its own: then weight applies to all ports.
	// +optional
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=100
	Ports []PortStatus `json:"ports,omitempty"`

	// readyEndpoints is the number of endpoints that are ready to answer.
	// +required
	// +kubebuilder:validation:Minimum=0
	ReadyEndpoints int32 `json:"readyEndpoints"`
}

// PortStatus is the live weight of one port of a backend.
type PortStatus struct {
	// port is the number of the root Service's port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// protocol is the transport of the root Service's port.
	// +required
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol corev1.Protocol `json:"protocol"`

	// weight that is live.
	// +required
	// +kubebuilder:validation:Minimum=0
	Weight int32 `json:"weight"`
}

// MirrorStatus is the live mirroring.
type MirrorStatus struct {
	// service is the backend that gets the mirrored requests.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Service string `json:"service"`

	// percent of the requests to other backends that are mirrored.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`
}

// ConfirmedStatus says since when the routes of a gateway or mesh are as requested.
type ConfirmedStatus struct {
	// configuration is a digest of what the routes ask for.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Configuration string `json:"configuration"`

	// since is when the routes were written and the gateway or mesh had accepted them. Its
	// proxies may apply them a little later.
	// +required
	Since metav1.MicroTime `json:"since"`
}

// ProxiesStatus sums up what proxies serve. The operator reads it from each proxy.
type ProxiesStatus struct {
	// ready is the number of proxies that can take requests.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`

	// confirmed is the number of them that serve every request by configuration.
	// +required
	// +kubebuilder:validation:Minimum=0
	Confirmed int32 `json:"confirmed"`

	// configuration is a digest of all that proxies are to serve: of the split with its
	// annotations, and of the Services and HTTPRouteGroups that it refers to, none of
	// which changes metadata.generation.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Configuration string `json:"configuration"`

	// behind names the first proxies, at most 8, that do not serve this configuration yet.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Behind []ProxyStatus `json:"behind,omitempty"`
}

// MaxProxiesBehind is how many proxies a status names.
const MaxProxiesBehind = 8

// ProxyStatus is what one proxy serves.
type ProxyStatus struct {
	// name of the proxy's pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// observedGeneration is the metadata.generation of the split that every request
	// arriving at this proxy is served by; 0 when that is not known.
	// +required
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration"`

	// message says why the proxy does not serve the requested configuration, if that is known.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// AnnotationStatus on a TrafficSplit of a cluster whose TrafficSplits have no status
// holds the status, as JSON.
const AnnotationStatus = "serin.dev/status"

// Condition types of a TrafficSplit.
const (
	// ConditionAccepted is True when a router serves the split, False with the
	// reason when the split can't be served.
	ConditionAccepted = "Accepted"
	// ConditionResolvedRefs is True when the root Service, every backend and every
	// HTTPRouteGroup exist, and the Services have the ports that they need.
	ConditionResolvedRefs = "ResolvedRefs"
	// ConditionProgrammed is True when the weights of its observedGeneration are
	// live for every request to the root Service.
	ConditionProgrammed = "Programmed"
)

// Reasons of the conditions of a TrafficSplit.
const (
	// ReasonAccepted: the router serves the split.
	ReasonAccepted = "Accepted"
	// ReasonUnsupported: the router can't express a part of the split.
	ReasonUnsupported = "Unsupported"
	// ReasonUnknownRouter: the routing names no router of this operator.
	ReasonUnknownRouter = "UnknownRouter"
	// ReasonConflict: an older split already has the root Service.
	ReasonConflict = "Conflict"
	// ReasonInvalid: the split breaks a rule that the schema can't check.
	ReasonInvalid = "Invalid"
	// ReasonCircular: the splits of several Services lead back to each other.
	ReasonCircular = "Circular"
	// ReasonResolved: every reference exists and fits.
	ReasonResolved = "Resolved"
	// ReasonServiceNotFound: the root Service does not exist.
	ReasonServiceNotFound = "ServiceNotFound"
	// ReasonBackendNotFound: a backend does not exist; it gets no traffic.
	ReasonBackendNotFound = "BackendNotFound"
	// ReasonBackendUnsupported: a backend has no cluster IP, being headless or of type ExternalName; it gets no traffic.
	ReasonBackendUnsupported = "BackendUnsupported"
	// ReasonGroupNotFound: an HTTPRouteGroup does not exist; no request matches it.
	ReasonGroupNotFound = "GroupNotFound"
	// ReasonPortMismatch: a backend lacks a port of the root Service; it gets none of that port's traffic.
	ReasonPortMismatch = "PortMismatch"
	// ReasonProgrammed: the weights are live.
	ReasonProgrammed = "Programmed"
	// ReasonWaitingForProxies: proxies are starting or have not confirmed the generation yet.
	ReasonWaitingForProxies = "WaitingForProxies"
	// ReasonWaitingForRoutes: routes are being written, or the gateway or mesh has not confirmed them yet.
	ReasonWaitingForRoutes = "WaitingForRoutes"
	// ReasonRouteRefused: the gateway or mesh refuses a route; the message says why.
	ReasonRouteRefused = "RouteRefused"
	// ReasonSettling: the routes are confirmed, and the proxies of the gateway or mesh are given time to follow.
	ReasonSettling = "Settling"
	// ReasonWaitingForService: the root Service's endpoints are not the proxies yet.
	ReasonWaitingForService = "WaitingForService"
	// ReasonProxyError: a proxy can't serve the generation; its message says why.
	ReasonProxyError = "ProxyError"
	// ReasonPending: nothing is programmed yet for another reason, given in the message.
	ReasonPending = "Pending"
)
