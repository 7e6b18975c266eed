// SPDX-License-Identifier: Apache-2.0

// Package enforcement has the node of a local cluster enforce NetworkPolicies, by
// kube-network-policies of Kubernetes' SIG Network (see e2e/tools/networkpolicies).
package enforcement
