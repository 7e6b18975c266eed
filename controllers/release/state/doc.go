// SPDX-License-Identifier: Apache-2.0

// Package state is what one look at a Rollout knows and what it decides. It is pure, and
// decides nothing itself.
//
//	Observation  what the shell read
//	Facts        what a target (a Deployment, a service pair, a CanaryRelease) says of it
//	Snapshot     both, the spec as values, and the record: the questions about a release
//	Draft        a Snapshot and the Decision in the making
//	Decision     the status to write, and what to do then
package state
