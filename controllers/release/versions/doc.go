// SPDX-License-Identifier: Apache-2.0

// Package versions moves the pods and the Services of the versions of one workload. The
// releases of Rollouts and of Helm releases stand on it: what must hold before a version
// loses its pods, or is handed over to its Deployment, is said once, here. It is pure, and
// when each move is due is the caller's to decide.
//
//	move        | waits for
//	------------+------------------------------------------------------------
//	KeepBackend | nothing
//	Scale       | nothing
//	Empty       | the version gets no traffic
//	Delete      | the caller knows that the version has no pods
//	HandOver    | exactly the workload's pods, all available; all traffic live
//	DropSplit   | nothing: the traffic returns to the root Service
//	DropBackends| the caller knows that the split is gone
package versions
