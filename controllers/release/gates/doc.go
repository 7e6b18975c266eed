// SPDX-License-Identifier: Apache-2.0

// Package gates says what has to be open before the canary gets more traffic: schedules,
// freezes, spec.paused, a failure that waits for a user, and hooks. Nothing here is ever
// asked before traffic is removed. It is pure.
package gates
