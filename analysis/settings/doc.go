// SPDX-License-Identifier: Apache-2.0

// Package settings reads spec.analysis of a Rollout into what the judge takes.
//
// The Rollout planner and the replay share it, so that the same object means the
// same test in the cluster and on a desk. It is pure, and it must not know what
// else a Rollout says.
package settings
