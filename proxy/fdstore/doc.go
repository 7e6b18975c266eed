// SPDX-License-Identifier: Apache-2.0

// Package fdstore keeps the files of an agent open when it crashes, for the next one.
//
//	Supervisor ──starts──► agent ──Keep, Drop──► Supervisor ──Kept──► the next agent
//
// The Supervisor is process 1 of the container and does next to nothing else. Files pass
// over a socket between the two, by name. See docs/decisions/031.
package fdstore
