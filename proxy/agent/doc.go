// SPDX-License-Identifier: Apache-2.0

// Package agent runs nginx where the requests to a root Service go through.
//
// It learns from a feed what to serve, has package nginx render it, puts the
// configuration and the table of weights where nginx finds them, and says that it serves a
// generation only when every request that arrives is served by it. It counts
// requests from nginx's access log, serves probes and metrics, and drains on
// stop. It decides nothing about traffic: weights come from the TrafficSplit,
// and after the TrafficSplit is gone the last ones stay in force.
//
// An fdstore.Supervisor is the parent of the agent. It keeps the sockets that clients
// connect to, so that nginx serves on when the agent crashes and the next agent
// runs. When the whole container ends, what was live and the counts outlive it in the
// pod's volume: the next container serves the same until it knows what is wanted.
//
//	Feed ──Want──> Agent ──Render──> nginx.conf ──(only when it differs)──> another nginx
//	                 │     └───────> table of weights ──(rename)──> every worker, within a second
//	                 └──────> what is served, for the operator that reads it
//	nginx ──access log──> Tailer ──> counts ──> /metrics
//
// What it is made of has packages of its own: weights, sockets, udp, counts,
// accesslog, nginxproc, feed and fdstore.
package agent
