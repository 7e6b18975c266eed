// SPDX-License-Identifier: Apache-2.0

// Command serin is the control plane of Serin:
//
//	serin manager           the controllers of Rollouts and TrafficSplits
//	serin metrics           the API of TrafficMetrics
//	serin check             whether an installation works
//	serin uninstall-check   whether it may be removed
//	serin version           what this binary was built from
//
// With the packages below it, it is the only place that wires things together; it decides
// nothing. What carries traffic is the command serin-proxy.
package main
