// SPDX-License-Identifier: Apache-2.0

// Package judgement says what was lost in a scenario of the end-to-end tests.
//
// Its input is a Record: what the load generator and the other clients counted, and what was
// left over. It knows no clock and no cluster, so that recorded runs can be judged again.
//
// It must pardon nothing. What Kubernetes itself breaks is measured on a control, a Service
// without Serin whose endpoints change at the same moments, and not guessed.
package judgement
