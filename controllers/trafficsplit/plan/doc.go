// SPDX-License-Identifier: Apache-2.0

// Package plan decides what happens to a TrafficSplit next. Decide is pure: the
// same Observation gives the same Decision; everything that it needs is in API
// objects, so that a controller that was killed at any line goes on where it was.
//
// The way in, each arrow waiting for the observation:
//
//	finalizer → objects of the data plane → every proxy wanted serves the generation
//	→ root Service taken over → its endpoints are proxies only → Programmed
//
// The way out:
//
//	root Service given back → its endpoints are no proxies → workload deleted
//	→ no proxy left → other objects deleted → finalizer removed
//
// It must not do I/O, take the time, or know what kind of data plane there is.
package plan
