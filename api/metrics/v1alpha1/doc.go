// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the TrafficMetrics of the Service Mesh Interface,
// metrics.smi-spec.io/v1alpha1: request counts and latencies of a resource and
// its edges. It is served by an aggregated API server and never stored.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.smi-spec.metrics.v1alpha1
// +groupName=metrics.smi-spec.io
package v1alpha1
