// SPDX-License-Identifier: Apache-2.0

// Package delegated releases a CanaryRelease, which makes its pods and moves its traffic
// itself, as a target of the release engine. It is pure.
package delegated
