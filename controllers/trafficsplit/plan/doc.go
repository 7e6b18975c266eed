// SPDX-License-Identifier: Apache-2.0

// Package plan decides what happens to a TrafficSplit next. Decide is pure: the
// same Observation gives the same Decision; everything that it needs is in API
// objects, so that a controller that was killed at any line goes on where it was.
//
// The way in, each arrow waiting for the observation:
//
//	finalizer → objects of the data plane → every proxy wanted serves the generation
//	→ EndpointSlices of the proxies → they are endpoints of the root Service
//	→ root Service cut over → its endpoints are proxies only → Programmed
//
// The way out:
//
//	root Service restored → its own pods are among its endpoints → workload deleted
//	→ no proxy left → EndpointSlices and other objects deleted → finalizer removed
//
// Proxies are endpoints of the root Service by EndpointSlices of Serin's own, whatever it
// selects. The cutover adds a key to its selector that no pod of its own has. So the proxies share its
// traffic with its own pods from when they are endpoints until the cutover, and again
// from when it is restored until they stop, and a Service whose selector another writer
// resets is never without endpoints.
//
// It must not do I/O, take the time, or know what kind of data plane there is.
package plan
