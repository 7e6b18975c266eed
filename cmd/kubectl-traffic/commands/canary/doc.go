// SPDX-License-Identifier: Apache-2.0

// Package canary has the commands below kubectl traffic canary. What they show and whether a
// transition may be asked for is decided in rolloutview.
package canary
