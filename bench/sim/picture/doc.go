// SPDX-License-Identifier: Apache-2.0

// Package picture draws what the simulation found, as SVG. It must not find
// anything itself.
package picture
