// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes on this machine: a control plane and
// one node that runs containers, made from Go modules and Debian packages, with no
// registry. [Up] starts or repairs it, [Down] removes every trace of it. Where a cluster is
// named (see [Options]), that one is used and nothing is started.
//
// What a cluster needs lives in one folder: data, sockets, logs, and a record of
// every process that was started and of everything on the machine that was changed.
// The record is written before the change, so that an interrupted start can be undone.
package cluster
