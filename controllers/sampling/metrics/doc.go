// SPDX-License-Identifier: Apache-2.0

// Package metrics measures the metrics of releases again and again, outside of the
// reconcile, and keeps what they gave: a bounded number of samples in memory, for who
// judges them, and fewer in an AnalysisResult, for users.
//
//	Watch ──> due at its interval ──> a slot of its namespace ──> Measurer
//	                 ^                                               │
//	                 └───────────────────────────────────────────────┤
//	Changed <── a sample, a window, or the reason why not <──────────┤
//	AnalysisResult <── at most every WriteEvery <────────────────────┘
//
// The package decides nothing: a number outside of its limits is a sample like any
// other, and a measurement that could not be made is a sample with a reason. Nothing is
// kept across a restart but the AnalysisResult, which is not read back: a measurement
// that is missing delays a release, one that is made up could end it.
package metrics
