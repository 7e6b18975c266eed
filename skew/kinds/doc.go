// SPDX-License-Identifier: Apache-2.0

// Package kinds reads of which version of Serin the kinds of a cluster are. The chart writes it
// into their descriptions, which every client with an identity may read. It decides nothing.
package kinds
