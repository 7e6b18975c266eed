// SPDX-License-Identifier: Apache-2.0

// Package judge decides, window after window, whether the evidence from live
// traffic speaks against a canary.
//
// Two things can fail a canary:
//
//   - The comparison: it fails requests more often than the stable version does
//     at the same time, is slower, or is worse in a metric that the user named.
//     This is a windowed two-sample e-process, a running bet against "the canary
//     is no worse". One may look after every window and stop at any time: the
//     chance of ever rolling back a canary that is no worse in any window is at
//     most Config.MaxFalseRollback.
//   - A limit, such as "at least 99 % succeed" or "p99 at most 0.5 s", missed in
//     several measurements in a row. Limits are the user's own statement and
//     carry no such guarantee.
//
// The bets against the canary run over the whole rollout of one revision. What a
// Pass or an early promotion needs (requests of both versions, measured limits,
// bets against "it is worse by the tolerance") is counted from the start of the
// present step, so that traffic at one weight never certifies another; requests
// are counted from the end of the start-up phase, in which a lot is tolerated.
//
// Where Config.Shares says so, package shares tests whether the versions got the shares that
// the weights of the step promise. While they did not, nothing passes.
//
// From the single bet to the verdict:
//
//	boundary    one window against one null: projection and likelihood ratio
//	track       the bets on one kind of bad event: failures, or one latency bound
//	metric      the tracks of one metric, and what must be known before betting
//	merge       the weighted mean over metrics
//	dispersion  how many requests count as one, where failures come in clusters
//	absorb      one window through all of them, into the State
//	next        the verdict
//
// The package is pure: it imports the standard library and the packages analysis and shares
// only, takes the time as a parameter and allocates nothing per window. Input
// that cannot be true, or that is missing, is Inconclusive: it is never a Pass,
// never a Fail, and leaves the state as it was.
package judge
