// SPDX-License-Identifier: Apache-2.0

// Package boxgraph draws a graph as text: boxes in columns, with lines from left to
// right.
//
//	┌─────────┐     ┌─────┐    ┌─────┐     ┌─────┐
//	│ traffic ├─┬──▶│ foo ├─┬─▶│ bar │◀───▶│ baz │
//	└─────────┘ │   └─────┘ │  └─────┘     └─────┘
//	            └───────────┘
//
// A line leaves a box at its right side, and ends at the left side of another one with
// an arrow. Each line turns in a column of its own, so that "┼" is always a crossing and
// never a meeting. A line that would lead back to the left ends at the name of the box
// with "↩".
//
// The package is pure, and knows nothing of traffic.
package boxgraph
