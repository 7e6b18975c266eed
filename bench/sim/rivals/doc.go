// SPDX-License-Identifier: Apache-2.0

// Package rivals re-implements how other tools, and the usual statistical tests,
// decide about a canary, so that they can be compared with Serin on the same
// traffic.
//
// Each follows the published rule with the published or customary parameters;
// the comment of each type names the source. Where a rule leaves something open,
// the choice that serves the rival is taken, and said.
//
// A rival sees windows of five seconds, one after the other, and answers each
// with an Action. Most look only once a minute. The package must not import the
// judge's statistics: what is compared must not share code.
package rivals
