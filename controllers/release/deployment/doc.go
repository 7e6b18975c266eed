// SPDX-License-Identifier: Apache-2.0

// Package deployment releases a Deployment: what is its own about it, as a target of the
// release engine. It is pure.
//
// Read target.go first: it has the table of phases. What other actors change meanwhile is
// in drift.go, and a stable version that was deleted in lost.go.
package deployment
