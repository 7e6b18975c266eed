// SPDX-License-Identifier: Apache-2.0

// Command kubectl-traffic is a plugin of kubectl: it is run as "kubectl traffic".
//
//	plugin    the commands: flags, requests and what is printed
//	shares    who gets which share of the traffic   (pure)
//	tags      Services that reach one version       (pure)
//	figures   TrafficMetrics as tables and graphs   (pure)
//	sight     a Rollout as a tree and in sentences  (pure)
//	terminal  what may be written to a terminal
//	gendocs   writes docs/kubectl-traffic
//
// The plugin does what a user can do with kubectl and the API; it must not import the
// controllers, but for the pure calendar of schedule: what it tells of
// windows and freezes is then what the operator does.
package main
