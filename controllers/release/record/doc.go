// SPDX-License-Identifier: Apache-2.0

// Package record writes what happens to a release into the status, before anything
// happens because of it: the verdict on a revision, the history, the user's actions, and
// the outbox of notifications. It is pure and writes no action.
package record
