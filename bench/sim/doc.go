// SPDX-License-Identifier: Apache-2.0

// Package sim measures by simulation how well rules tell bad canaries from good
// ones: Serin's own, which is the real judge, and those of other tools.
//
// A Cell is one kind of traffic. It is played many times, each time with its own
// random numbers, until the rule rolls back or the release is over; the weights
// are those that the rule asks for. The figures of all runs of a cell become one
// line of the report, and the goals are checked against the lines.
//
// The random numbers depend on the seed, the cell and the number of the run
// only, so a report is the same byte for byte each time, in whatever order and
// on however many cores the runs are played. The package does no I/O.
package sim
