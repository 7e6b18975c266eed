// SPDX-License-Identifier: Apache-2.0

// Package target makes the objects that a migration writes: Serin's kinds, and the
// Deployments and Services that they refer to. It is pure.
package target
