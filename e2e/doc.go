// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Serin as its users have it: installed by its chart on a
// cluster with a node, under traffic.
package e2e
