// SPDX-License-Identifier: Apache-2.0

// Package feed connects an agent to the TrafficSplit that it serves: what the API wants to
// be served, and what the split's status says is served.
package feed
