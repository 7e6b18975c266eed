// SPDX-License-Identifier: Apache-2.0

// Package metrics has the commands that show TrafficMetrics: top and topology. What is made
// of the answers is decided in trafficstats and boxgraph.
package metrics
