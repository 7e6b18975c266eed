// SPDX-License-Identifier: Apache-2.0

// Command kubectl-traffic is a plugin of kubectl: it is run as "kubectl traffic".
//
//	commands      the commands: flags, requests and what is printed
//	trafficblock  who gets which share of the traffic   (pure)
//	tags          Services that reach one version       (pure)
//	trafficstats  TrafficMetrics as tables and graphs   (pure)
//	boxgraph      a graph as text                       (pure)
//	rolloutview   a Rollout as a tree and in sentences  (pure)
//	rolloutapi    reads and writes Rollouts as a user
//	dashboard     the page in the browser, and its server
//	terminal      what may be written to a terminal
//	gendocs       writes docs/kubectl-traffic
//
// The plugin does what a user can do with kubectl and the API; it must not import the
// controllers. The pure calendar of schedule is shared, so that what the plugin says of
// windows and freezes is what the operator does.
package main
