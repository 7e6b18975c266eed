// SPDX-License-Identifier: Apache-2.0

// Package schedule says when a release may go on: within the windows and outside
// of the freezes of a Rollout's spec.schedule, and outside of every operator's
// Freeze. It is pure: it has no clock and no client, the time is a parameter.
//
// Times of the day are what a clock on the wall shows; durations are time that
// passes. Where the two disagree, one rule decides: a start begins at the first
// moment at which the clock shows it or something later. Hence
//
//	clocks                 | a start                     | begins
//	-----------------------+-----------------------------+------------------------------------
//	are set forward        | that they skip              | at the moment of the change
//	are set back           | that they show twice        | once, at the first of the two
//	skip a day             | on that day                 | when the next day begins
//
// The rule maps the wall clock to time without ever going backwards, so that the
// order of starts is the same on both, and a search may go from start to start.
//
// Intervals are half-open: a window is open at its start and closed at its end;
// one that begins when another ends goes on.
package schedule
