// SPDX-License-Identifier: Apache-2.0

// Package aggregate makes the TrafficMetrics of resources out of flows.
//
//	Snapshot ──► resolved: whose pods the ends of each flow are, and which of two
//	             sides that saw the same requests counts
//	         ──► Metrics: a sum for each resource
//	         ──► Edges: a sum for each other end of one resource
//
// A request between two pods is one request of each resource that contains either of
// them, also where that is the same resource. Metrics and Edges are pure; Provider
// asks a Source for the snapshot that they are made of, once for each window.
//
// What is not known is left out: a latency that part of the flows lack or that is beyond
// the last bound of the histogram, and counts that are no numbers.
package aggregate
