// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the serin.dev/v1alpha1 API: what a user declares in
// Git and what Serin reports back. It contains types, constants and total
// functions on them; it reads nothing and decides nothing.
//
// +kubebuilder:object:generate=true
// +groupName=serin.dev
package v1alpha1
