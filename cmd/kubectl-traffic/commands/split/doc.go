// SPDX-License-Identifier: Apache-2.0

// Package split has the commands that change TrafficSplits: update and tag. What they change
// is decided in trafficblock and tags.
package split
