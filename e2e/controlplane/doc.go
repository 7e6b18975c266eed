// SPDX-License-Identifier: Apache-2.0

// Package controlplane gives Go tests a real Kubernetes API: etcd, the API
// server and, when asked for, the controllers of Kubernetes. There is no node; with
// [Options.FakeNode] pods are made ready by a stand-in for the kubelet, so that
// Deployments progress.
//
// The programs are built from Go modules on first use, which takes minutes;
// after that a control plane is ready in seconds. It needs no root. One per test
// package, shared by way of [Run], and a namespace per test is how it is meant to be used.
package controlplane
