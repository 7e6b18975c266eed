// SPDX-License-Identifier: Apache-2.0

// Package fakenode stands in for the scheduler and the kubelet where there is
// no node: it assigns every pod to a node that exists only in the API, gives it an
// address, reports it running and ready, and lets it go when it is deleted. No container runs.
// More nodes can be registered, and lost again, for pods that select their pool.
//
// Everything else in the cluster stays real. What a pod does is decided by the
// pure function that computes its status from the pod, the options and the time.
package fakenode
