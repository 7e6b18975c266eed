// SPDX-License-Identifier: Apache-2.0

// Package istio is the router that has Istio's proxies split the traffic of a root
// Service: it changes VirtualServices of their owners, or makes one of its own, and
// copies DestinationRules of the root Service to the backends.
//
// Render, Original and what they use are pure: they turn the spec of a
// VirtualService, as its owner has it, and a traffic.Split into the spec that is
// wanted, and back. Objects are handled as JSON and never as types: fields that a
// newer Istio brings stay as they are. The router reads and writes them.
package istio
