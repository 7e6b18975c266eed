// SPDX-License-Identifier: Apache-2.0

// Package newrelic measures by a query in NRQL through New Relic's GraphQL API, as the
// only number of its only row. See
// https://docs.newrelic.com/docs/apis/nerdgraph/examples/nerdgraph-nrql-tutorial/.
package newrelic
