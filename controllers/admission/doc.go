// SPDX-License-Identifier: Apache-2.0

// Package admission changes writes of other actors before the API server stores them, where
// the cluster serves no MutatingAdmissionPolicy: a mutating webhook in every manager, the
// leader or not.
//
//	path       | write                                   | change
//	-----------+-----------------------------------------+--------------------------------
//	/hold      | a managed Deployment's template changes | paused, and still managed
//	/keep      | a Service in a split loses Serin's keys | they stay in its selector
//	/sign      | a decision in a Rollout's spec.control  | the user's name beside it
//	/configure | a pod of a version with copies          | reads the copies
//
// Each rule is a pure function of the request, and decides as the policy of the chart does
// whose place it takes; e2e/chart compares the two. The conditions of the policies are those
// of the webhooks too, so that the API server calls for nothing else.
//
// Certificate and its authority are kept by package certificate.
package admission
