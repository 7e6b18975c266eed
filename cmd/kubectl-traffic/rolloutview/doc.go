// SPDX-License-Identifier: Apache-2.0

// Package rolloutview says what a user wants to know of a Rollout: as a tree of its
// versions and pods, as one line, and in sentences. It also makes the user
// actions, each bound to what the user has seen.
//
// The package is pure: it is given what was read, and writes nothing.
package rolloutview
