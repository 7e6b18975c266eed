// SPDX-License-Identifier: Apache-2.0

// Package trafficsplit is the controller of TrafficSplits. It observes a split
// with everything that it refers to, lets the pure package plan decide, reports in one
// write of the status that is left out when nothing changed, and carries the actions
// out in order, each with the preconditions of what was observed.
//
// It reads from the cache, and through its router what proxies say that they serve. The exceptions are steps that can't be undone, for
// which a cache that lags behind is not good enough: what a root Service selects
// is looked up when it is about to lose its proxies, and a split before a Service is
// taken for its orphan.
//
// It knows nothing of Rollouts, and of routers only the interface.
package trafficsplit
