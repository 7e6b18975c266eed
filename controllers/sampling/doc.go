// SPDX-License-Identifier: Apache-2.0

// Package sampling measures TrafficSplits while releases need them, and keeps the
// last closed windows in memory: Proxies by the counters of Serin's own proxies,
// TrafficMetrics by the API of that name, and Routed by the one that fits the router.
//
// Readings become windows by analysis.Windower. The controller is notified of each new
// window and each change of health, and fetches the windows when it likes.
//
// The package judges nothing, and never turns missing data into data: what
// could not be read shows in analysis.Health.
package sampling
