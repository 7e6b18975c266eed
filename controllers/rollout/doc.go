// SPDX-License-Identifier: Apache-2.0

// Package rollout is the shell around the planner of Rollouts: it observes,
// calls release.Decide, writes the status, then acts. It decides nothing itself and
// moves traffic only by the weights of a TrafficSplit, or by spec.delegation of a
// CanaryRelease, which has splits of its own.
//
//	read        | from
//	------------+--------------------------------------------------
//	Rollout, Deployment, ReplicaSets, Services, TrafficSplit | caches
//	CanaryRelease that is named as the workload              | cache
//	admission policy that guards Deployments                 | cache
//	measurements                                             | Measurements
//
// Nothing is polled: a reconcile follows a change of one of these objects, a new
// window of measurement, or the time that the planner named.
package rollout
