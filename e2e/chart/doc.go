// SPDX-License-Identifier: Apache-2.0

// Package chart is here for its tests: they render the Helm chart without a cluster, and load
// its alerts and its dashboard into Prometheus. It must hold no other code.
package chart
