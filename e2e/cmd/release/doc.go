// SPDX-License-Identifier: Apache-2.0

// Command release makes the images and all else that a release of Serin consists of, and
// publishes it.
package main
