// SPDX-License-Identifier: Apache-2.0

// Package routes is what the routers of routes share, those of the Gateway API and of
// Istio: how they read and write objects without Go types, how they mark what they made,
// and the arithmetic of weights.
//
// It knows no kind of route, decides nothing about a split, and imports no router.
package routes
