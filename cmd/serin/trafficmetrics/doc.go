// SPDX-License-Identifier: Apache-2.0

// Package trafficmetrics is the command serin metrics: it wires the API of TrafficMetrics
// together with where traffic is measured, and decides nothing.
package trafficmetrics
