// SPDX-License-Identifier: Apache-2.0

// Package prometheus observes traffic by what a Prometheus, or what speaks its API, has
// stored of a mesh or gateway.
//
// A Profile says as data which counters there are and what their labels mean; those of
// the usual data planes are in the folder profiles. Each observation is a fixed number of
// instant queries, asked in parallel, whatever the number of pods is:
//
//	sum by (LABELS) (((counter - counter offset WINDOW) >= 0) or NEW or increase(counter[WINDOW]))
//
// The difference is exact, and windows that follow one another lose nothing between them.
// NEW are series that began at a target which another one goes on at: they count in full.
// increase() estimates only where the target began or a series was reset. Windows end at
// multiples of their length, so that everybody who asks gets the same.
//
// Queries are made of the parser's nodes, with = and quoted values alone: no value can
// change what a query does. What the server answers is in no error.
package prometheus
