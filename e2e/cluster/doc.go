// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes on this machine: a control plane and
// one node that runs containers, made from Go modules and Debian packages, with no
// registry. [Up] starts or repairs it, [Down] removes every trace of it. Where a cluster is
// named (see [Options]), that one is used and nothing is started.
//
// What a cluster needs lives in one folder: data, sockets, logs, its network
// namespace, and a record of every process that was started. Clusters of different folders
// run on one machine at the same time. What they share, and how it was before the first of
// them, is in one record of the machine, which is written before anything is
// changed, so that an interrupted start can be undone.
package cluster
