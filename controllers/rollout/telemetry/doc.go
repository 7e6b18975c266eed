// SPDX-License-Identifier: Apache-2.0

// Package telemetry has the metrics of Rollouts: counters of what happened between one
// status and the next, and gauges of what the Rollouts are like now. It reads statuses
// and nothing else.
package telemetry
