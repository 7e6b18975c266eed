// SPDX-License-Identifier: Apache-2.0

// Package mutate changes one condition of a decision at a time and expects a
// test of the same package to fail. The changes are written by hand, in lists.
//
// Nothing is written into the work tree: the compiler reads the changed file
// from elsewhere (go build -overlay).
package mutate
