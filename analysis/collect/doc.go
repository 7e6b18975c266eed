// SPDX-License-Identifier: Apache-2.0

// Package collect polls the targets that are being analysed and keeps their
// last closed windows in memory.
//
// Each interval it asks the Source for one scrape of every watched target, at
// most a fixed number at a time; a target that is still being scraped is left
// out of the round, so a slow one delays only itself. Scrapes become windows by
// analysis.Windower. The owner of a target is told of each new window and each
// change of its health, and fetches the windows when it likes.
//
// The package makes no decisions, and never turns missing data into data: what
// could not be read shows in Health.
package collect
