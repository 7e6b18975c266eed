// SPDX-License-Identifier: Apache-2.0

// Package compat builds the API server and the controllers of another minor version of Kubernetes
// from its Go modules, for the integration tests to run on; see docs/compatibility.md.
//
// The module that is built is generated: requirements and versions are those of
// k8s.io/kubernetes itself. A version can be built when the module proxy has all of its modules.
package compat
