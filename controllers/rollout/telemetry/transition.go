// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// transition is what happened between one status and the next. A status is
// written only on top of the one that was read, so every transition exists once:
// a Rollout that is listed again makes none, and a restart only of what was not written yet.
type transition struct {
	// ended are the releases that ended, newest first.
	ended []v1alpha1.HistoryEntry
	// cause of the rollback that was decided; "" when none was.
	cause string
	// step is how long the step took that was passed; negative when none was.
	step time.Duration
	// verdict of the analysis; "" when it stayed what it was.
	verdict string
	// mismatch is whether the shares of a step turned out not to be its weight.
	mismatch bool
	// interventions of users that were carried out.
	interventions []v1alpha1.Intervention
}

// compare says what happened between the status that was read and the one that was
// written.
func compare(before, after *v1alpha1.RolloutStatus) transition {
	ended := newEntries(before.History, after.History)
	return transition{
		ended: ended, cause: newCause(before, after), step: passed(before, after),
		verdict: newVerdict(before, after), mismatch: mismatched(after) && !mismatched(before), interventions: newInterventions(before, after, ended),
	}
}

// newEntries are the entries in front of those that were there before. Old ones
// fall out at the end.
func newEntries(before, after []v1alpha1.HistoryEntry) []v1alpha1.HistoryEntry {
	for n := range after {
		kept := after[n:]
		if len(kept) <= len(before) && apiequality.Semantic.DeepEqual(kept, before[:len(kept)]) {
			return after[:n]
		}
	}
	return after
}

func newCause(before, after *v1alpha1.RolloutStatus) string {
	d := after.Decision
	if d == nil || d.Action != v1alpha1.ActionRollBack {
		return ""
	}
	if was := before.Decision; was != nil && was.Action == d.Action && was.Revision == d.Revision && was.Time.Equal(&d.Time) {
		return ""
	}
	return d.Reason
}

// passed is how long the step before took, from the end of the one before it. What
// ended otherwise, by a rollback or an edit of the steps, was not passed.
func passed(before, after *v1alpha1.RolloutStatus) time.Duration {
	was, is := before.Step, after.Step
	if was == nil || is == nil || is.Index <= was.Index || !sameRelease(before.Canary, after.Canary) {
		return -1
	}
	return is.StartedAt.Sub(was.StartedAt.Time)
}

func sameRelease(a, b *v1alpha1.VersionStatus) bool {
	return a != nil && b != nil && a.Revision == b.Revision && a.StartedAt.Equal(b.StartedAt)
}

func newVerdict(before, after *v1alpha1.RolloutStatus) string {
	was, is := before.Analysis, after.Analysis
	if is == nil || was != nil && was.Verdict == is.Verdict {
		return ""
	}
	return is.Verdict
}

func mismatched(st *v1alpha1.RolloutStatus) bool {
	return st.Analysis != nil && st.Analysis.Reason == string(judge.ReasonShareMismatch)
}

// newInterventions are those that were not there before. One that ended the
// release went to its history in the same write.
func newInterventions(before, after *v1alpha1.RolloutStatus, ended []v1alpha1.HistoryEntry) []v1alpha1.Intervention {
	all := slices.Clone(after.Interventions)
	for i := range ended {
		all = append(all, ended[i].Interventions...)
	}
	return slices.DeleteFunc(all, func(i v1alpha1.Intervention) bool {
		return slices.ContainsFunc(before.Interventions, func(was v1alpha1.Intervention) bool {
			return apiequality.Semantic.DeepEqual(i, was)
		})
	})
}
