// SPDX-License-Identifier: Apache-2.0

// Package sampling finds the proxies of a TrafficSplit and has their counters
// collected while a release needs them. It judges nothing.
package sampling
