// SPDX-License-Identifier: Apache-2.0

// Package served knows how the cluster serves TrafficSplits: in which version, and with a
// status or without one. It asks once, at the start, and writes nothing.
package served
