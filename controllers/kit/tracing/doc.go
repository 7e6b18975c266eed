// SPDX-License-Identifier: Apache-2.0

// Package tracing gives what controllers do spans of OpenTelemetry: one trace for each reconcile
// and for each request that is made in the background. Whether there are any is decided by the
// context: without Into, nothing is recorded and nothing costs more than a look at the context.
//
// It knows the interface of OpenTelemetry and nothing of how spans are exported.
package tracing
