// SPDX-License-Identifier: Apache-2.0

// Package inventory knows which objects the ends of requests belong to: the pod that has
// an address, the workloads, Services, node and namespace that a pod belongs to, and the
// backends of TrafficSplits.
//
//	API server ──► Watcher: one watch a kind ──► Store: records and indexes in memory
//
// A Store is pure: it does no I/O, and takes objects from any source. It keeps of
// an object only what a question can be about, since a cluster may have ten thousands of
// pods; labels are kept once for all objects that have the same.
package inventory
