// SPDX-License-Identifier: Apache-2.0

// Package rolloutview says what a user wants to know of a Rollout: as a tree of its
// versions and pods, as one line, and in sentences. It also makes the decisions that a
// person takes, bound to what that person has seen.
//
// The package is pure: it is given what was read, and writes nothing.
package rolloutview
