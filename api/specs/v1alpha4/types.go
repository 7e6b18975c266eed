// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HTTPRouteGroup names sets of HTTP requests.
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
	// matches are the sets: a request belongs to the group when it is in at least
	// one of them. 1 to 32 sets.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Matches []HTTPMatch `json:"matches"`
}

// HTTPMatch is a set of requests: those that meet every condition given. At least
// one condition is required besides the name.
//
// +kubebuilder:validation:MinProperties=2
type HTTPMatch struct {
	// name of the set, unique in the group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// methods are the HTTP methods of the requests; "*" means all of them. When
	// unset the method does not matter.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	Methods []HTTPMethod `json:"methods,omitempty"`

	// pathRegex is a regular expression that the path must match from its start, but
	// not to its end. The path is taken as it was sent, encoded and without the query.
	// Only what RE2 and PCRE read alike is accepted: characters of ASCII, sets, groups
	// without names, |, ^, $, repetitions, \d, \w, \s, \b, and (?i) at the start. What
	// repeats must not be repeated.
	// When unset the path does not matter.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PathRegex string `json:"pathRegex,omitempty"`

	// headers are regular expressions for the values of headers: either a
	// map from name to expression, or a list of maps with one name each. All of
	// them must match a part of the header's value; a header that is absent or empty
	// matches none. At most 256 bytes each, with the rules of pathRegex. When unset
	// headers do not matter.
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
	// conditions of the group: Accepted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
