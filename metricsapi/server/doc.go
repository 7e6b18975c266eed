// SPDX-License-Identifier: Apache-2.0

// Package server serves the TrafficMetrics API, metrics.smi-spec.io/v1alpha1, behind the
// aggregation layer of Kubernetes.
//
//	kubectl ──► kube-apiserver ──► this server ──► observe.Provider
//	                 ▲                  │
//	                 └── may they? ─────┘
//
// It is built on k8s.io/apiserver: who asks is told by the kube-apiserver, over a
// connection with its own client certificate, and whether they may is asked of it for
// every request. The server stores nothing, and decides nothing about numbers: it turns
// paths, selectors and chunks into requests to a Provider, and what that finds into
// objects, tables and errors.
package server
