// SPDX-License-Identifier: Apache-2.0

// Package policy says what a verdict of the judge means for a release that is
// under way: wait, take the next step, promote, or roll back.
//
// It is the rule of the Rollout planner without everything that is not about
// evidence: pods, routers, schedules, users. The simulation and the replay
// share it, so that what is measured and what users try out is the same rule.
//
// It is pure: no clock and no I/O.
package policy
