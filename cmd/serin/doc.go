// SPDX-License-Identifier: Apache-2.0

// Command serin is all of Serin in one binary:
//
//	serin manager   the controllers of Rollouts and TrafficSplits
//	serin metrics   the API of TrafficMetrics
//	serin proxy     the agent that runs nginx in a proxy's pod
//	serin version   what this binary was built from
//
// It is the only place that wires packages together; it decides nothing.
package main
