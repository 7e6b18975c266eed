// SPDX-License-Identifier: Apache-2.0

// Package program is what the programs in Serin's images share: how they end, the flags of
// the log, and the subcommand that prints the version. It imports nothing that only one of
// them needs, since all of it is in each of them.
package program
