// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

func TestTheLineageLeavesOutWhatWasRolledBackFrom(t *testing.T) {
	entry := func(revision, reason string) v1alpha1.HistoryEntry {
		return v1alpha1.HistoryEntry{Revision: revision, Outcome: v1alpha1.OutcomePromoted, Reason: reason}
	}
	for name, test := range map[string]struct {
		history []v1alpha1.HistoryEntry // oldest first
		stable  string
		want    []string
	}{
		"forward":              {[]v1alpha1.HistoryEntry{entry("v1", ""), entry("v2", ""), entry("v3", "")}, "v3", []string{"v1", "v2"}},
		"back to the first":    {[]v1alpha1.HistoryEntry{entry("v1", ""), entry("v2", ""), entry("v1", state.ReasonRollbackWindow)}, "v1", nil},
		"back, and forward":    {[]v1alpha1.HistoryEntry{entry("v1", ""), entry("v2", ""), entry("v1", ""), entry("v3", "")}, "v3", []string{"v1"}},
		"cut off, and back":    {[]v1alpha1.HistoryEntry{entry("v2", ""), entry("v1", state.ReasonRollbackWindow)}, "v1", nil},
		"what was rolled back": {[]v1alpha1.HistoryEntry{entry("v1", ""), {Revision: "v2", Outcome: v1alpha1.OutcomeRolledBack}}, "v1", nil},
	} {
		slices.Reverse(test.history)
		if got := lineage(test.history, test.stable); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestADecisionRecordsTheLiveWeight(t *testing.T) {
	for observed, want := range map[int32]int32{-1: 0, 0: 0, 30: 30} {
		d := &state.Draft{}
		d.Now, d.Split.Presence, d.Split.Observed = time.Unix(0, 0), kit.Present, observed
		decide(d, v1alpha1.ActionRollBack, "", "")
		if got := d.Status.Decision.Weight; got != want {
			t.Errorf("weight %d is recorded as %d", observed, got)
		}
	}
}

func TestAUserActionMeansOneRevisionAndOneStep(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*state.Snapshot, *v1alpha1.Control)
		want   effect
	}{
		"the present step":               {func(*state.Snapshot, *v1alpha1.Control) {}, applied},
		"another revision":               {func(_ *state.Snapshot, c *v1alpha1.Control) { c.Revision = "v1" }, declined},
		"a retry of what is in progress": {func(_ *state.Snapshot, c *v1alpha1.Control) { c.Action = v1alpha1.ControlRetry }, declined},
		"a step that is over":            {func(_ *state.Snapshot, c *v1alpha1.Control) { c.StepIndex = new(int32(0)) }, declined},
		"this step by its number":        {func(_ *state.Snapshot, c *v1alpha1.Control) { c.StepIndex = new(int32(1)) }, applied},
		"a later step":                   {func(_ *state.Snapshot, c *v1alpha1.Control) { c.StepIndex = new(int32(2)) }, pending},
		"no step yet":                    {func(s *state.Snapshot, _ *v1alpha1.Control) { s.Status.Step = nil }, pending},
		"a promotion in progress": {func(s *state.Snapshot, _ *v1alpha1.Control) {
			s.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.ActionPromote}
		}, declined},
		"a promotion in progress, promoted fully": {func(s *state.Snapshot, c *v1alpha1.Control) {
			s.Status.Decision, c.Action = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Reason: state.ReasonPassed}, v1alpha1.ControlPromoteFull
		}, declined},
		"a promotion that a failure holds, promoted fully": {func(s *state.Snapshot, c *v1alpha1.Control) {
			s.Status.Decision, c.Action = &v1alpha1.Decision{Action: v1alpha1.ActionPromote, Reason: state.ReasonPassed}, v1alpha1.ControlPromoteFull
			s.Status.Analysis = &v1alpha1.AnalysisStatus{Verdict: "Fail"}
		}, applied},
	} {
		s := &state.Snapshot{Facts: state.Facts{Revision: "v2"}}
		s.Status.Canary = &v1alpha1.VersionStatus{Revision: "v2", StartedAt: new(metav1.Unix(0, 0))}
		s.Status.Step = &v1alpha1.StepStatus{Index: 1}
		c := &v1alpha1.Control{Revision: "v2", Action: v1alpha1.ControlPromote}
		test.change(s, c)
		if got, why := effectOf(s, c); got != test.want {
			t.Errorf("%s: %v (%s)", name, got, why)
		}
	}
}
