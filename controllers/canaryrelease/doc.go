// SPDX-License-Identifier: Apache-2.0

// Package canaryrelease is the shell around the planner of CanaryReleases: it observes,
// asks helmrelease.Decide, writes the status, then acts. It decides nothing itself. It moves
// traffic by one TrafficSplit for each Service, and knows Helm only as releases.Releases.
//
//	read                                                      | from
//	----------------------------------------------------------+-------------------------------
//	CanaryRelease, Deployments, ReplicaSets, Services,        | caches
//	EndpointSlices, TrafficSplits, Rollouts                   |
//	the Helm release and what it would be                     | releases.Releases, kept in memory
//	values in Secrets, copies that the canary's pods read     | the API server, as the
//	                                                          | ServiceAccount of the namespace
//	what both versions answered                               | Measurements
//
// Helm's records are not watched: that takes the right to read every Secret of the
// cluster. They are read again when something that Helm changes has changed, and every few
// seconds. No value of a release is in any status, event or log.
package canaryrelease
