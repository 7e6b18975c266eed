// SPDX-License-Identifier: Apache-2.0

// Package diagnosis says why pods don't run: of nodes what is wrong with them, of pods
// that are not ready what their containers wait for, and the latest warnings. A test that
// fails on a machine that is gone by then leaves nothing else to find the cause by.
package diagnosis
