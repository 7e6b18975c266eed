// SPDX-License-Identifier: Apache-2.0

// Package gatewayapi serves TrafficSplits with the routes of the Gateway API: it
// changes references of routes that a user has (ingress), or makes routes of its own
// for the root Service (mesh).
//
// Routes are handled without Go types on purpose. A user's route may hold fields of a
// newer version of the API, or of the experimental channel, than any type that this
// package could be built with, and what a type does not know is lost when it is
// written back.
//
// router.go, observe.go, policy.go and discovery.go talk to the cluster. The rest is pure:
// rules and a split in, rules or a reason out.
package gatewayapi
