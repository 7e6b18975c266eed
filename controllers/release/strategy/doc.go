// SPDX-License-Identifier: Apache-2.0

// Package strategy reads the spec of a Rollout as values: whatever strategy it names
// becomes a list of steps, and each step says which requests the canary gets, by how many
// pods, for how long, and how it is judged. It is pure and knows no release.
package strategy
