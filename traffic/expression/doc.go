// SPDX-License-Identifier: Apache-2.0

// Package expression checks the regular expressions of HTTPRouteGroups, which every data
// plane gets as they are written: they have to mean the same to all of their engines, and
// must not take them long.
package expression
