// SPDX-License-Identifier: Apache-2.0

// Package v1alpha4 holds the HTTPRouteGroup of the Service Mesh Interface,
// specs.smi-spec.io/v1alpha4: named sets of HTTP requests that a TrafficSplit
// can be limited to.
//
// +kubebuilder:object:generate=true
// +groupName=specs.smi-spec.io
package v1alpha4
