// SPDX-License-Identifier: Apache-2.0

// Package view shows the story of the demo: [Live] as a picture that changes in
// place on a terminal, [Plain] as lines in a log. Both show the same facts, which
// are taken from a frame by one pure function, and decide nothing.
package view
