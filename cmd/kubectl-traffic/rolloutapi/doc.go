// SPDX-License-Identifier: Apache-2.0

// Package rolloutapi reads what runs a Rollout's versions and writes what a user decides about
// them, by the API of the cluster and with the client of that user. The commands and the
// dashboard share it, so that both refuse the same and write the same.
//
// What is shown, and whether a decision is possible, is of rolloutview; this package must
// not print.
package rolloutapi
