// SPDX-License-Identifier: Apache-2.0

// Package analysis holds what traffic measurements look like, from any source that made
// them, and turns successive readings of counters into windows that can be
// judged.
//
// Its inputs are Scrapes (monotonic counters of both versions, read from the
// same proxies at the same time) and the live weight. Its outputs
// are Windows: increments over disjoint stretches of time in which the weight
// did not change. Everything here is a pure value; I/O lives in
// analysis/source, polling in controllers/sampling and the decision in
// analysis/judge.
//
// The package must not guess: a counter that went backwards, a pod that
// restarted or did not answer, a window in which the weight moved, are left out
// with a Reason, and never clamped, extrapolated or counted as zero.
package analysis
