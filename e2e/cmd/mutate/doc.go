// SPDX-License-Identifier: Apache-2.0

// Command mutate tries the mutants of the lists in e2e/mutate/lists. Run it in
// the folder e2e.
package main
