// SPDX-License-Identifier: Apache-2.0

package state

// Phase is where a Rollout is.
type Phase string

// The phases of a release, whatever is released. Those of one kind of target are in its
// file.
const (
	PhaseNothing    Phase = "Nothing"   // nothing to do
	PhaseReleasing  Phase = "Releasing" // one of those below
	PhaseRestoring  Phase = "Restoring"
	PhaseSuperseded Phase = "Superseded"
	PhaseRolledBack Phase = "RolledBack"
	PhaseNew        Phase = "New"
	PhaseEdited     Phase = "Edited"
	PhaseControlled Phase = "Controlled"
	PhaseUnjudged   Phase = "Unjudged"
	PhaseFailed     Phase = "Failed"
	PhaseUngoverned Phase = "Ungoverned"
	PhaseStaying    Phase = "Staying"
	PhaseWithdrawn  Phase = "Withdrawn"
	PhaseLowered    Phase = "Lowered"
	PhaseWaiting    Phase = "Waiting"
	PhaseTampered   Phase = "Tampered"
	PhasePromoting  Phase = "Promoting"
	PhaseStepping   Phase = "Stepping"
)
