// SPDX-License-Identifier: Apache-2.0

// Package gitops tests what Serin ships for GitOps tools: the health rules and actions of
// config/gitops for Argo CD, and the health check expressions of examples/gitops for Flux.
// Both run on objects that the planners' tests recorded, as these tools run them.
package gitops
