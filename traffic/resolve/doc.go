// SPDX-License-Identifier: Apache-2.0

// Package resolve follows the references of a TrafficSplit: from API objects it makes a
// traffic.Split, or says why the split, or a part of it, can't be served. It is pure, and
// what it decides is the same for every router.
package resolve
