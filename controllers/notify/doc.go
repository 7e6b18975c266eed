// SPDX-License-Identifier: Apache-2.0

// Package notify sends the HTTP requests of hooks and notifications, outside of
// every reconcile.
//
// What is sent is decided by the planner and kept in the Rollout's
// status; a controller hands it over with Send, as often as it likes, and reads
// what became of it with Results. Nothing is kept across a restart: the same
// requests are handed over again, with the same identity in the header
// Idempotency-Key, so that a receiver recognises what it has taken before.
//
//	Send ──> queue ──> a slot of the namespace ──> at most PerHost at once ──> endpoint
//	           ^                                                                 │
//	           └── not yet: after CallAgain · failed: back-off ──────────────────┤
//	                                                                             │
//	Changed <── outcome or message is another one <──────────────────────────────┘
//
// The package decides nothing about a release. Of an answer it looks at the status
// and at Retry-After only; no word of it gets into a message. Where requests may
// go is said by egress.Policy.
package notify
