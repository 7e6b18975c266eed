// SPDX-License-Identifier: Apache-2.0

// Package workload builds the objects that a release of a Deployment needs and
// compares pod templates the way the Deployment controller does. It reads and
// writes nothing.
package workload
