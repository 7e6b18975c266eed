// SPDX-License-Identifier: Apache-2.0

// Package release decides what a Rollout does next. Decide is pure: everything it
// knows is in the Observation, everything it wants is in the Decision, and it
// has no clock, client or logger.
//
// A release of a Deployment goes through these phases. Each waits until the
// one before is observed:
//
//	phase      | what happens                                     | waits for
//	-----------+--------------------------------------------------+-----------------------------------
//	hold       | the Deployment is paused on the new template     | paused
//	prepare    | backend Services, split at 100 % stable          | split programmed
//	step i     | canary scaled to its share                       | pods available
//	           | weight i written                                 | weight i observed
//	           | hold, analysis                                   | time, Pass
//	promote    | canary at full scale                             | pods available
//	           | weight 100                                       | weight 100 observed
//	           | ReplicaSet handed to the Deployment              | adopted, old pods gone
//	clean up   | split deleted                                    | traffic on the root Service
//	           | backend Services deleted                         |
//
// The objects of a release have no owner reference to the Rollout: one that is
// deleted in the foreground would lose them before its traffic is back on stable.
//
// A rollback is weight 0, observed; canary scaled to 0, gone; clean up. A newer
// template rolls the canary back and begins again. The present phase is derived
// from the observation each time; what can't be derived (the step, the verdict,
// which version is stable) is in the Rollout's status, which is written before
// anything is acted on. So a crash at any point repeats the same decision.
//
// Read decide.go first. The engine takes a snapshot, finds the phase in a table without
// changing anything, and calls one function for it, which drafts the decision. Its rooms
// import one way, in this order:
//
//	strategy   the spec as steps and settings
//	state      what one look knows, and the decision in the making
//	evidence   judges the traffic
//	record     writes verdicts, history, user actions and notifications into the status
//	gates      says what has to be open before the canary gets more traffic
//	routing    moves the traffic, and waits until it has moved
//	deployment, servicepair, delegated   what the kinds of targets have of their own
//
// What was judged is handed over as Entries, of which package tape makes the recording.
//
// What is still done about a Rollout that can't be served is in refuse.go.
package release
