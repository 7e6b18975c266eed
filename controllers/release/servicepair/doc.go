// SPDX-License-Identifier: Apache-2.0

// Package servicepair moves traffic between two Services that users keep, as a target of
// the release engine. It is pure.
package servicepair
