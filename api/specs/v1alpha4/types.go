// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HTTPRouteGroup gives names to sets of HTTP requests, so that a TrafficSplit or a step of
// a Rollout can apply to these requests only.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=httproutegroups,shortName=htr,categories=serin
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HTTPRouteGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the sets of requests.
	// +required
	Spec HTTPRouteGroupSpec `json:"spec"`

	// status says whether the group can be used.
	// +optional
	Status HTTPRouteGroupStatus `json:"status,omitempty"`
}

// HTTPRouteGroupList is a list of HTTPRouteGroups.
//
// +kubebuilder:object:root=true
type HTTPRouteGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HTTPRouteGroup `json:"items"`
}

// HTTPRouteGroupSpec holds the sets of requests of a group.
type HTTPRouteGroupSpec struct {
	// matches are the sets of requests, 1 to 32. A request belongs to the group when it is
	// in at least one of them.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Matches []HTTPMatch `json:"matches"`
}

// HTTPMatch is a set of requests: those that meet all of its conditions. It needs at least
// one of methods, pathRegex and headers besides the name.
//
// +kubebuilder:validation:MinProperties=2
type HTTPMatch struct {
	// name of the set, 1 to 253 characters. It must be unique in the group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// methods are the HTTP methods of the requests, at most 10. "*" stands for every
	// method. When unset, requests of every method match.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	Methods []HTTPMethod `json:"methods,omitempty"`

	// pathRegex is a regular expression for the path, 1 to 256 characters. It must match
	// from the start of the path, but need not match up to its end: /api matches /api/v1
	// too. The path is compared as the client sent it: percent-encoded, without the query.
	// Only syntax with the same meaning in RE2 and PCRE is accepted: ASCII characters,
	// character sets, unnamed groups, |, ^, $, repetitions, \d, \w, \s, \b, and (?i) at the
	// start. A repetition must not contain another one. When unset, every path matches.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PathRegex string `json:"pathRegex,omitempty"`

	// headers are regular expressions for the values of headers: either a map from header
	// names to expressions, or a list of maps with one name each. Every expression must
	// match some part of the value of its header; a header that is absent or empty does
	// not match. Each expression has at most 256 bytes and follows the rules of pathRegex.
	// When unset, headers are not compared.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Headers Headers `json:"headers,omitzero"`
}

// HTTPMethod is the method of a request, or "*" for all of them.
//
// +kubebuilder:validation:Enum="*";GET;HEAD;PUT;POST;DELETE;CONNECT;OPTIONS;TRACE;PATCH
type HTTPMethod string

// HTTPRouteGroupStatus says whether the group can be used.
type HTTPRouteGroupStatus struct {
	// conditions of the group. Accepted is True when the group can be used; otherwise its
	// message says what to change.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
