// SPDX-License-Identifier: Apache-2.0

// Package mesh tells whether a service mesh takes part in the traffic of an app's pods, so that
// proxies between clients and these pods would take from it what it is there for. It is pure,
// and must not ask the mesh itself.
package mesh
