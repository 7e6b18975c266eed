// SPDX-License-Identifier: Apache-2.0

// Package helmrelease decides what a CanaryRelease does next. Decide is pure: everything it
// knows is in the Observation, everything it wants is in the Decision, and it has no
// clock, client or logger.
//
// Each stage waits until the cluster shows that the stage before is done:
//
//	stage     | what happens                                        | waits for
//	----------+-----------------------------------------------------+----------------------------
//	prepare   | backend Services, splits that send the canary nothing | splits programmed
//	          | copies of ConfigMaps and Secrets                    | they exist
//	          | ReplicaSets of the canary                           | pods available
//	serve     | weights of the spec                                 | splits programmed
//	adopt     | canary at the Deployment's scale, all traffic to it | splits programmed
//	          | Deployment paused, Helm release upgraded            | deployed
//	          | same pods: ReplicaSet released to the Deployment    | adopted, old pods gone
//	          | other pods: Deployment rolls, traffic to its pods   | programmed, canary gone
//	deprecate | nothing to the canary                               | splits programmed
//	          | ReplicaSets of the canary scaled to zero, deleted   | gone
//	clean up  | splits deleted                                      | gone
//	          | backend Services and copies deleted                 |
//
// A deletion waits ten minutes for a router that confirms nothing. Then it deletes the
// splits first, while the pods of both versions answer behind their Services.
//
// Each look derives the stage from the observation. What can't be derived (how it ends, and
// why) is in the status, which is written before any action. So a crash at any point repeats
// the same decision.
//
// Read decide.go first: a table finds the phase of a snapshot without changing anything, and
// one function for each phase drafts the decision. How pods and Services of one workload's
// versions move is in package versions.
//
// A Rollout may decide about the weights and the end: see delegation.go.
//
// The Helm release decides what the Deployment's pods are. When another user or tool changes
// it, or the Deployment, the canary is removed. The Deployment stays paused until then, so
// that the pods that requests go to are not replaced.
package helmrelease
