// SPDX-License-Identifier: Apache-2.0

package process

// Identity names one process of this machine for ever: its number together
// with the moment it started. It survives being written to a file.
type Identity struct {
	// PID is the number of the process.
	PID int `json:"pid"`
	// Started is when the process started, in clock ticks since the machine booted.
	Started uint64 `json:"started"`
	// Boot is the identity of that boot.
	Boot string `json:"boot"`
}
