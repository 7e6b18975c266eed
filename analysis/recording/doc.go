// SPDX-License-Identifier: Apache-2.0

// Package recording is what was measured and judged in a release, window by window,
// so that it can be drawn, audited and judged again.
//
// Line is one window as a file has it, in JSON, one a line. Judge judges a line as the
// operator did. Recorder makes the lines of a release that goes on: it judges each as a
// reader will, and where that does not lead to the operator's state, it writes the state
// itself into the line. Long recordings are thinned: windows of the older half are merged
// two by two, so that the newest stay exact. Text stores lines, compressed, and ReadText
// reads them; a reader trusts nothing of what is stored.
//
// The package is pure: it has no clock and does no I/O.
package recording
