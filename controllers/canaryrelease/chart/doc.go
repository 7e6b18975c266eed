// SPDX-License-Identifier: Apache-2.0

// Package chart is what a CanaryRelease knows of Helm: what a release is, what it would
// be with other values, and how it becomes that. No value of a release is in any error.
package chart
