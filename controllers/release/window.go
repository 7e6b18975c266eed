// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// becauseReturning is why a version is promoted that comes back within the window.
// The history is read by it, so it must not change.
const becauseReturning = "it is one of the latest versions that were stable, within spec.rollbackWindow"

// inRollbackWindow reports whether the revision is one of the latest versions that
// were stable before this one, so that the way there is a way back.
func (p *pass) inRollbackWindow() bool {
	if p.Rollout.Spec.RollbackWindow == nil || p.status.Stable == nil || p.failedLast() {
		return false
	}
	line := lineage(p.status.History, p.status.Stable.Revision)
	line = line[max(0, len(line)-int(p.Rollout.Spec.RollbackWindow.Revisions)):]
	return slices.Contains(line, p.revision)
}

// failedLast reports whether the revision was rolled back since it was stable.
func (p *pass) failedLast() bool {
	for _, h := range p.status.History {
		if h.Revision == p.revision && h.Outcome != v1alpha1.OutcomeSuperseded {
			return h.Outcome == v1alpha1.OutcomeRolledBack
		}
	}
	return false
}

// lineage is what was stable before the present version, the latest last, without the
// versions that one went back from: those are forward from here.
//
//	history, oldest first       | lineage
//	----------------------------+--------
//	v1, v2, v3                  | v1, v2
//	v1, v2, v3, back to v1      | none
//	v1, v2, back to v1, v3      | v1
//	v1, v2, back to v1, then v2 | v1
//
// Of a history that is cut off at its end, a return can still be told by its reason.
func lineage(history []v1alpha1.HistoryEntry, stable string) []string {
	var line []string
	for _, h := range slices.Backward(history) {
		if h.Outcome != v1alpha1.OutcomePromoted && h.Outcome != v1alpha1.OutcomeDeployed {
			continue
		}
		if at := slices.Index(line, h.Revision); at >= 0 {
			line = line[:at]
		} else if h.Message == promotedBecause(becauseReturning) {
			line = nil
		}
		line = append(line, h.Revision)
	}
	return slices.DeleteFunc(line, func(revision string) bool { return revision == stable })
}
