// SPDX-License-Identifier: Apache-2.0

// Package view says what the pages of the dashboard show of Rollouts: a row of the fleet, and
// a release with what its viewer may do about it.
//
// The package is pure: it is given what was read and which rights the viewer has. Pages draw
// what it returns and decide nothing themselves.
package view
