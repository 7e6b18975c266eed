// SPDX-License-Identifier: Apache-2.0

// Package skew decides whether parts of Serin of two versions go together: the operator, its
// proxies, the kinds that the cluster serves, and the plugin. One minor version apart is
// supported, in both directions.
//
//	operator 0.3 ── proxies, kinds or plugin 0.2, 0.3, 0.4   supported
//	operator 0.3 ── 0.1, 0.5, 1.0                            refused
//	a build without a version ── any                         supported: a developer knows
//
// It does no I/O: who asks reads the versions.
package skew
