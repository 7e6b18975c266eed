// SPDX-License-Identifier: Apache-2.0

// Package policy says what a verdict of the judge means for a release that is
// under way: wait, take the next step, promote, or roll back.
//
// The release engine, the replay and the simulation all run it, so that what is
// measured and what users try out is what the operator does. Pods, routers, schedules
// and user actions are the engine's.
//
// It is pure: no clock and no I/O.
package policy
