// SPDX-License-Identifier: Apache-2.0

// Package v1alpha4 holds the TrafficSplit of the Service Mesh Interface,
// split.smi-spec.io/v1alpha4, with a status that the specification leaves out.
// Every object that is valid by the specification's text is valid here.
//
// +kubebuilder:object:generate=true
// +groupName=split.smi-spec.io
package v1alpha4
