// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

var midnight = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) metav1.Time      { return metav1.NewTime(midnight.Add(d)) }
func micro(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(midnight.Add(d)) }

func ended(revision, outcome string, at time.Duration) v1alpha1.HistoryEntry {
	return v1alpha1.HistoryEntry{Revision: revision, Outcome: outcome, EndedAt: after(at)}
}

func history(entries ...v1alpha1.HistoryEntry) v1alpha1.RolloutStatus {
	return v1alpha1.RolloutStatus{History: entries}
}

func decided(action v1alpha1.DecisionAction, reason string, at time.Duration) v1alpha1.RolloutStatus {
	return v1alpha1.RolloutStatus{Decision: &v1alpha1.Decision{Revision: "b", Action: action, Reason: reason, Time: micro(at)}}
}

// atStep is a release that began at midnight.
func atStep(revision string, index int32, since time.Duration) v1alpha1.RolloutStatus {
	start := after(0)
	return v1alpha1.RolloutStatus{
		Canary: &v1alpha1.VersionStatus{Revision: revision, StartedAt: &start},
		Step:   &v1alpha1.StepStatus{Index: index, Of: 3, StartedAt: micro(since)},
	}
}

func judged(verdict string) v1alpha1.RolloutStatus {
	return v1alpha1.RolloutStatus{Analysis: &v1alpha1.AnalysisStatus{Verdict: verdict}}
}

func because(reason string) v1alpha1.RolloutStatus {
	return v1alpha1.RolloutStatus{Analysis: &v1alpha1.AnalysisStatus{Verdict: "Inconclusive", Reason: reason}}
}

func skipped(at time.Duration) v1alpha1.Intervention {
	return v1alpha1.Intervention{Action: v1alpha1.ControlSkip, Time: micro(at)}
}

func TestATransitionIsWhatOneWriteOfTheStatusTells(t *testing.T) {
	a, b, c := ended("a", "Deployed", 1), ended("b", "RolledBack", time.Hour), ended("c", "Promoted", 2*time.Hour)
	withSkip := c
	withSkip.Interventions = []v1alpha1.Intervention{skipped(1), skipped(2)}
	tests := []struct {
		name          string
		before, after v1alpha1.RolloutStatus
		want          transition
	}{
		{name: "the shares turned out not to be the weight", before: because("NoTraffic"), after: because("ShareMismatch"), want: transition{mismatch: true}},
		{name: "they still are not", before: because("ShareMismatch"), after: because("ShareMismatch")},
		{name: "they are again", before: because("ShareMismatch"), after: because("NoTraffic")},
		{name: "nothing changed", before: atStep("b", 1, 0), after: atStep("b", 1, 0)},
		{name: "the first release ended", after: history(a), want: transition{ended: []v1alpha1.HistoryEntry{a}}},
		{name: "a release ended, and an old one is forgotten", before: history(b, a), after: history(c, b), want: transition{ended: []v1alpha1.HistoryEntry{c}}},
		{name: "a release ended, and only one is kept", before: history(b), after: history(c), want: transition{ended: []v1alpha1.HistoryEntry{c}}},
		{name: "two releases ended", before: history(a), after: history(c, b, a), want: transition{ended: []v1alpha1.HistoryEntry{c, b}}},
		{name: "fewer releases are kept", before: history(c, b, a), after: history(c, b)},
		{name: "the history is emptied", before: history(c, b, a)},

		{name: "a rollback was decided", after: decided("RollBack", "Aborted", 0), want: transition{cause: "Aborted"}},
		{name: "a rollback goes on", before: decided("RollBack", "Aborted", 0), after: decided("RollBack", "Aborted", 0)},
		{name: "a revision is rolled back for the second time", before: decided("RollBack", "Aborted", 0), after: decided("RollBack", "Aborted", 1e9), want: transition{cause: "Aborted"}},
		{name: "a promotion is rolled back", before: decided("Promote", "Passed", 0), after: decided("RollBack", "LimitMissed", 1e9), want: transition{cause: "LimitMissed"}},
		{name: "a promotion was decided", after: decided("Promote", "Passed", 0)},

		{name: "a step was passed", before: atStep("b", 1, time.Minute), after: atStep("b", 2, 3*time.Minute), want: transition{step: 2 * time.Minute}},
		{name: "a step was edited to an earlier one", before: atStep("b", 1, time.Minute), after: atStep("b", 0, 3*time.Minute)},
		{name: "a release of another revision took its place", before: atStep("a", 1, time.Minute), after: atStep("b", 2, 3*time.Minute)},
		{name: "a release ended in the middle of a step", before: atStep("b", 1, time.Minute)},

		{name: "the first verdict", after: judged("Inconclusive"), want: transition{verdict: "Inconclusive"}},
		{name: "the verdict stays", before: judged("Pass"), after: judged("Pass")},
		{name: "the verdict changes", before: judged("Pass"), after: judged("Fail"), want: transition{verdict: "Fail"}},
		{name: "the analysis is forgotten", before: judged("Pass")},

		{
			name:   "a user intervened again",
			before: v1alpha1.RolloutStatus{Interventions: []v1alpha1.Intervention{skipped(1)}},
			after:  v1alpha1.RolloutStatus{Interventions: []v1alpha1.Intervention{skipped(1), skipped(time.Hour)}},
			want:   transition{interventions: []v1alpha1.Intervention{skipped(time.Hour)}},
		},
		{
			name:   "an intervention ended the release, and goes to the history with the one before",
			before: v1alpha1.RolloutStatus{Interventions: []v1alpha1.Intervention{skipped(1)}},
			after:  history(withSkip),
			want:   transition{ended: []v1alpha1.HistoryEntry{withSkip}, interventions: []v1alpha1.Intervention{skipped(2)}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.want.step == 0 {
				test.want.step = -1
			}
			got := compare(&test.before, &test.after)
			if len(got.interventions) == 0 {
				got.interventions = nil
			}
			if len(got.ended) == 0 {
				got.ended = nil
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(transition{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
