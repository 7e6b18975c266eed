// SPDX-License-Identifier: Apache-2.0

// Package job measures by running a Kubernetes Job: 1 when it succeeded, 0 when it
// failed, and missing while it runs or when it is gone.
//
// The name of a Job is computed from what it is for, and the Job is made by that name
// and never by another one, so that it is made at most once across restarts. The
// Rollout owns it; its time, its retries and how long it is kept are bounded.
package job
