// SPDX-License-Identifier: Apache-2.0

// Package component says how each program of a cluster is run: its arguments
// and its configuration files. It is pure: what it returns depends only on what it is given.
//
// The API-only control plane of the Go tests and the local cluster with a node
// run the same control plane from here.
package component
