// SPDX-License-Identifier: Apache-2.0

// Package routing moves the traffic of a release and waits until it has moved: to stable,
// to the route on record, down in stages, and back to the root Service. It also keeps the
// deadline for all of that. It is pure.
package routing
