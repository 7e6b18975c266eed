// SPDX-License-Identifier: Apache-2.0

package release

import "github.com/serin-dev/serin/api/v1alpha1"

// target is what a kind of object that is released has of its own. The engine is the
// same for all of them. Another kind needs an implementation, its facts in the
// Observation, and a line in targetOf.
type target interface {
	// observe says what is released. It takes objects for ours that lost their mark.
	observe(s *snapshot) facts
	// assess is the phase outside of releases, hindrance before a release may begin, and
	// unprepared before traffic may move: phaseReleasing when there is none.
	assess(s *snapshot) phase
	hindrance(s *snapshot) phase
	unprepared(s *snapshot) phase
	// act acts for such a phase, and for those that each kind ends in its own way: it
	// makes the canary stable (Promoting), removes a rejected one (RolledBack), keeps one
	// without traffic that can't be released (Withdrawn), and restores everything when the
	// Rollout is deleted (Restoring). It reports whether that makes another phase.
	act(d *draft, p phase) (another bool)
}

func targetOf(ro *v1alpha1.Rollout) target {
	switch {
	case ro.Spec.Services != nil:
		return servicePair{}
	case ro.Spec.WorkloadRef.Kind == v1alpha1.KindCanaryRelease:
		return canaryRelease{}
	default:
		return deployment{}
	}
}
