// SPDX-License-Identifier: Apache-2.0

// Package shell is what the shells of Rollouts and of CanaryReleases share: how they read
// the facts of package kit from objects, and how they act. Every change and every deletion
// of an object names the version that the decision was made from. It decides nothing.
package shell
