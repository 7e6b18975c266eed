// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

const (
	// MaxHistory is how many releases the status can keep.
	MaxHistory     = 20
	defaultHistory = 10
	maxIgnored     = 512
)

// CloseRelease adds an entry to the history. One revision is closed once for each release.
func CloseRelease(d *state.Draft, outcome, revision, message string) {
	st := &d.Status
	entry := v1alpha1.HistoryEntry{
		Revision: revision, Outcome: outcome, Message: kit.Shorten(message), EndedAt: metav1.NewTime(d.Now),
		Interventions: st.Interventions,
	}
	st.Interventions = nil
	if decision := st.Decision; decision != nil && decision.Revision == revision {
		entry.Reason = decision.Reason
	}
	if d.Begun() {
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
	return min(max(limit, 1), MaxHistory)
}

// InRollbackWindow reports whether the revision is one of the latest versions that
// were stable before this one, so that its release is a rollback.
func InRollbackWindow(s *state.Snapshot) bool {
	if s.Rollout.Spec.RollbackWindow == nil || s.Status.Stable == nil || failedLast(s) {
		return false
	}
	line := lineage(s.Status.History, s.Status.Stable.Revision)
	line = line[max(0, len(line)-int(s.Rollout.Spec.RollbackWindow.Revisions)):]
	return slices.Contains(line, s.Revision)
}

// failedLast reports whether the revision was rolled back since it was stable.
func failedLast(s *state.Snapshot) bool {
	for _, h := range s.Status.History {
		if h.Revision == s.Revision && h.Outcome != v1alpha1.OutcomeSuperseded {
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
// Of a history that is cut off at its end, the reason still marks a return.
func lineage(history []v1alpha1.HistoryEntry, stable string) []string {
	var line []string
	for _, h := range slices.Backward(history) {
		if h.Outcome != v1alpha1.OutcomePromoted && h.Outcome != v1alpha1.OutcomeDeployed {
			continue
		}
		if at := slices.Index(line, h.Revision); at >= 0 {
			line = line[:at]
		} else if h.Reason == state.ReasonRollbackWindow {
			line = nil
		}
		line = append(line, h.Revision)
	}
	return slices.DeleteFunc(line, func(revision string) bool { return revision == stable })
}
