// SPDX-License-Identifier: Apache-2.0

// Package tags makes the Services by which the single versions of a TrafficSplit are
// reached, and keeps in an annotation of the split which there are.
//
//	TrafficSplit website, spec.service website
//	  annotation serin.dev/tags: {"candidate":"website-v2"}
//	Service candidate-website, owned by the split
//	  selects what website-v2 selects; has the ports of website
//
// The package is pure: it must not reach a cluster.
package tags
