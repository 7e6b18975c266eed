// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/delegated"
	"github.com/serin-dev/serin/controllers/release/deployment"
	"github.com/serin-dev/serin/controllers/release/servicepair"
	"github.com/serin-dev/serin/controllers/release/state"
)

// target is what a kind of object that is released has of its own. The engine is the
// same for all of them. Another kind needs an implementation, its facts in the
// Observation, and a line in targetOf.
type target interface {
	// Observe says what is released. It counts objects as ours that lost their mark.
	Observe(s *state.Snapshot) state.Facts
	// Assess is the phase outside of releases, hindrance before a release may begin, and
	// Unprepared before traffic may move: phaseReleasing when there is none.
	Assess(s *state.Snapshot) state.Phase
	Hindrance(s *state.Snapshot) state.Phase
	Unprepared(s *state.Snapshot) state.Phase
	// Act acts for such a phase, and for those that each kind ends in its own way: it
	// makes the canary stable (Promoting), removes a rejected one (RolledBack), keeps one
	// without traffic that can't be released (Withdrawn), and restores everything when the
	// Rollout is deleted (Restoring). It reports whether that makes another phase.
	Act(d *state.Draft, p state.Phase) (another bool)
}

func targetOf(ro *v1alpha1.Rollout) target {
	switch {
	case ro.Spec.Services != nil:
		return servicepair.Target{}
	case ro.Spec.WorkloadRef.Kind == v1alpha1.KindCanaryRelease:
		return delegated.Target{}
	default:
		return deployment.Target{}
	}
}
