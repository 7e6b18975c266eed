// SPDX-License-Identifier: Apache-2.0

// Command serin is the control plane of Serin:
//
//	serin manager   the controllers of Rollouts and TrafficSplits
//	serin metrics   the API of TrafficMetrics
//	serin version   what this binary was built from
//
// It is the only place that wires these packages together; it decides nothing. What carries
// traffic is the command serin-proxy.
package main
