// SPDX-License-Identifier: Apache-2.0

// Package trafficblock decides how --untag, --tag and --traffic change who gets which
// share of a Service's traffic. It follows the rules of Knative's command kn; the
// targets of its "traffic block" are the backends of a TrafficSplit here.
//
//	traffic block            TrafficSplit
//	revision                 backend: the name of a Service
//	@latest                  the newest version that is ready, when the command runs
//	percent                  weight; the weights that --traffic writes sum to 100
//	tag                      entry of the annotation serin.dev/tags
//	targets with the same    a single backend, whose weight is the sum
//	  revision
//
// The package is pure: it reads and writes nothing, and what it returns replaces
// all that was there, or nothing after an error.
package trafficblock
