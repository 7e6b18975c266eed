// SPDX-License-Identifier: Apache-2.0

// Package kit is what planners and the shells around them have in common: the facts about
// objects that both releases of a Rollout and of a CanaryRelease look at, the actions that
// change them, and the draft that a decision is written into. It is pure.
package kit
