// SPDX-License-Identifier: Apache-2.0

// Package tape decides what of a Rollout's releases is recorded, and when the recording is
// stored: at the end of a release, and at the end of a step. A store is a write, and takes
// the place of another one: the shell leaves a write of figures out for it. It is pure.
package tape
