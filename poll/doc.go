// SPDX-License-Identifier: Apache-2.0

// Package poll does things again and again: a Poller many tasks, at most some of them at
// the same time and each at most once at a time, and Every a single one.
//
//	Set ──> due on the grid of the task ──> a slot of its namespace ──> Do
//	                 ^                                                  │
//	                 └──────────────────────────────────────────────────┘
//	Now ──> due at once, off the grid
//
// A task that takes long delays only others of its namespace, which may have to wait for a
// slot, and what it misses is not made up for. Package fair says who has the next slot. The
// package knows nothing of what is done: who reads keeps the outcome, its errors and its
// age.
package poll
