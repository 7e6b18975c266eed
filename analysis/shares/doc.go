// SPDX-License-Identifier: Apache-2.0

// Package shares tests whether each version really gets the share of the requests that its
// weight promises (a sample-ratio mismatch). It is pure: counts in, evidence out.
//
// The test may be looked at after every window. The chance that a release ever has a mismatch
// although its router keeps the weights is at most [MaxFalseAlarm], whatever the number of
// its steps.
package shares
