// SPDX-License-Identifier: Apache-2.0

// Package rollout has the commands below kubectl traffic rollout. What they show and whether
// a decision may be written is decided in rolloutview.
package rollout
