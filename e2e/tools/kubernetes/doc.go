// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is a whole Kubernetes in one static binary: etcd, the
// control plane, the node agents and kubectl. It does what the name it is
// called by says, so one compilation and one file on disk serve all seven.
//
// It is a module of its own because k8s.io/kubernetes pins every staging
// repository, while the operator follows newer client libraries.
package main
