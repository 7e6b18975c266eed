// SPDX-License-Identifier: Apache-2.0

// Package trafficstats turns TrafficMetrics into what users read: a success rate, requests
// a second and latencies for each resource, and the graph of who calls whom. What was
// not measured is absent, never zero.
//
// The package is pure: it must not ask a cluster.
package trafficstats
