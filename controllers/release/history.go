// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

const (
	maxHistory = 20
	maxIgnored = 512
	fullWeight = 100
)

// closeRelease adds an entry to the history. One revision is closed once for each release.
func closeRelease(d *draft, outcome, revision, message string) {
	st := &d.status
	entry := v1alpha1.HistoryEntry{
		Revision: revision, Outcome: outcome, Message: kit.Shorten(message), EndedAt: metav1.NewTime(d.Now),
		Interventions: st.Interventions,
	}
	st.Interventions = nil
	if decision := st.Decision; decision != nil && decision.Revision == revision {
		entry.Reason = decision.Reason
	}
	if d.begun() {
		entry.StartedAt = st.Canary.StartedAt
	}
	st.History = append([]v1alpha1.HistoryEntry{entry}, st.History...)
	if limit := historyLimit(&d.Rollout.Spec); len(st.History) > limit {
		st.History = st.History[:limit]
	}
}

func historyLimit(spec *v1alpha1.RolloutSpec) int {
	limit := defaultHistory
	if l := spec.HistoryLimit; l != nil {
		limit = int(*l)
	}
	return min(max(limit, 1), maxHistory)
}

// inRollbackWindow reports whether the revision is one of the latest versions that
// were stable before this one, so that the way there is a way back.
func inRollbackWindow(s *snapshot) bool {
	if s.Rollout.Spec.RollbackWindow == nil || s.status.Stable == nil || failedLast(s) {
		return false
	}
	line := lineage(s.status.History, s.status.Stable.Revision)
	line = line[max(0, len(line)-int(s.Rollout.Spec.RollbackWindow.Revisions)):]
	return slices.Contains(line, s.revision)
}

// failedLast reports whether the revision was rolled back since it was stable.
func failedLast(s *snapshot) bool {
	for _, h := range s.status.History {
		if h.Revision == s.revision && h.Outcome != v1alpha1.OutcomeSuperseded {
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
		} else if h.Reason == reasonRollbackWindow {
			line = nil
		}
		line = append(line, h.Revision)
	}
	return slices.DeleteFunc(line, func(revision string) bool { return revision == stable })
}
