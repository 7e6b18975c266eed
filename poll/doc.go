// SPDX-License-Identifier: Apache-2.0

// Package poll does things again and again: a Poller many tasks, at most some of them at
// the same time and each at most once at a time, and Every a single one.
//
//	Set ──> due on the grid of the task ──> one of the workers ──> Do
//	                 ^                                             │
//	                 └─────────────────────────────────────────────┘
//	Now ──> due at once, off the grid
//
// A task that takes long delays only itself, and what it misses is not made up for. The
// package knows nothing of what is done: who reads keeps the outcome, its errors and its
// age.
package poll
