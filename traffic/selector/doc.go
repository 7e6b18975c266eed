// SPDX-License-Identifier: Apache-2.0

// Package selector serves splits without any proxy: all requests go to one backend, whose
// pods the root Service selects itself.
//
//	weights 100 and 0 → the root Service gains what the first backend selects by
//	weights 0 and 100 → … what the second one selects by, in one write
//
// The TrafficSplit controller writes the selector and looks at the endpoints; this package
// says what can't be served so.
package selector
