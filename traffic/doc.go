// SPDX-License-Identifier: Apache-2.0

// Package traffic is the router-neutral form of a TrafficSplit: the split with
// every reference resolved, as plain values, and what a Router does with it. Package
// resolve builds it from API objects without any I/O; each router renders it in a folder
// of its own. Routers know nothing of Rollouts and nothing of each other.
package traffic
