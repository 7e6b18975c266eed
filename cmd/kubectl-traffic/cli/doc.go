// SPDX-License-Identifier: Apache-2.0

// Package cli is what all commands of kubectl traffic share: the cluster that the flags
// choose, the flags -o and --dry-run, completions, waiting, and the errors with their exit
// statuses. It knows of no command, and decides nothing about traffic or releases.
package cli
