// SPDX-License-Identifier: Apache-2.0

// Package endpoints makes the proxies of a TrafficSplit endpoints of its root Service, by
// EndpointSlices of Serin's own: no selector of a Service finds proxies, since they carry no
// label of the app.
//
//	pods of the proxies, root Service, nodes ──> Diff ──> writes of EndpointSlices
//
// Diff decides, by the library of Kubernetes' own controller, so that zones, ports, families
// of addresses, and proxies that are not ready or terminate are treated as it treats them.
// The controller of TrafficSplits makes the first slices and deletes the last. In between,
// and while the root Service has the key of the proxies, each replica of the manager keeps
// them up to date, whether it leads or not: a proxy that stops must leave them while the
// leader is dead. All replicas write the same, and a write whose slice has changed fails.
// When the key is gone, it is enough to write once that a proxy is terminating.
//
// It knows nothing of TrafficSplits but their name.
package endpoints
