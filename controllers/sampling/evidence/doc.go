// SPDX-License-Identifier: Apache-2.0

// Package evidence turns the metrics that users named into what the judge takes:
// their settings into limits and comparisons, and their measurements into a part of
// the windows of traffic.
//
// It is pure, and gives the same for the same windows and measurements, so that a
// window that is judged again after a conflict is judged alike. It must not leave out
// a measurement that was due and gave nothing: that is no good news.
package evidence
