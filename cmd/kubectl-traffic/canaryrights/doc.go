// SPDX-License-Identifier: Apache-2.0

// Package canaryrights decides which rights a CanaryRelease's ServiceAccount needs for what a
// chart renders. It is pure: it reads no cluster, and writes nothing.
package canaryrights
