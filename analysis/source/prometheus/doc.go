// SPDX-License-Identifier: Apache-2.0

// Package prometheus measures by PromQL, at a Prometheus or what speaks its API.
//
// Queries are parsed before they are sent. What a user or a release fills in becomes
// the value of a label matcher in the parsed query, never text that is parsed, so that
// no value can change what a query does; and a query that does not come from the
// operator's own side is confined to the namespace of its release.
//
// A plain metric is one number, by an instant or a range query. A metric that is
// compared is made of raw counters: the increase between two readings is computed
// here, series by series, and not by rate() or increase(), which extrapolate to the
// ends of their window, count over a reset and overlap from one evaluation to the
// next, so that the increments would be neither whole nor independent.
package prometheus
