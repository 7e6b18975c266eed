// SPDX-License-Identifier: Apache-2.0

// Package story tells the demo as a list of scenes: deploy v1 and call it, apply
// v2 and see it promoted, apply v3, which fails now and then, and see it rolled
// back. While the scenes run it keeps an account of what was seen, and at the
// end it checks every promise of Serin against that account.
//
// Everything that touches a cluster is behind [Stage] and [Observer]; everything
// that is shown is behind [View]. The package never reads a clock: the time is
// that of the snapshots, of which an Observer must give at least one a second.
//
//	Observer ─Snapshot─> Account ─> Scene.Done? ─> next scene
//	                        └─────> Check ─> promises that were not kept
package story
