// SPDX-License-Identifier: Apache-2.0

// Command bench-analysis measures by simulation how well Serin and other tools
// decide about canaries, and writes the page of the results, or the picture of
// the differences that can be found.
package main
