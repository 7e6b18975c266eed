// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestNothingMeansTheDefaults(t *testing.T) {
	want := settings.Settings{Judge: judge.Defaults(), OnInconclusive: v1alpha1.InconclusiveHold}
	for name, a := range map[string]*v1alpha1.Analysis{"no analysis": nil, "an empty one": {}} {
		got, err := settings.Of(a)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEachFieldIsReadIntoItsOwnSetting(t *testing.T) {
	got, err := settings.Of(&v1alpha1.Analysis{
		MaxFalseRollback: "2%", MaxBadPromotion: "3%", Tolerance: "4pp", MinRequests: new(int32(7)), MaxCorrelatedFailures: new(int32(9)),
		MinEvidence: "6m", Startup: &v1alpha1.Startup{For: "45s", Tolerate: "8pp"}, MinSuccessRate: "99%", ConsecutiveFailureLimit: new(int32(1)),
		OnInconclusive: v1alpha1.InconclusiveRollBack, OnConclusive: v1alpha1.ConclusivePromote,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Settings{Judge: judge.Defaults(), OnInconclusive: v1alpha1.InconclusiveRollBack, Early: true}
	want.Judge.MaxFalseRollback, want.Judge.MaxBadPromotion, want.Judge.Tolerance = .02, .03, .04
	want.Judge.MinRequests, want.Judge.MaxCorrelatedFailures, want.Judge.MinEvidence = 7, 9, 6*time.Minute
	want.Judge.Startup = judge.Startup{For: 45 * time.Second, Tolerate: .08}
	limit := judge.MinSuccessRate(.99)
	limit.ConsecutiveFailureLimit = 1 // fewer than the default
	want.Judge.Limits = []judge.Limit{limit}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyAskedForEvidencePromotesEarly(t *testing.T) {
	got, err := settings.Of(&v1alpha1.Analysis{OnConclusive: v1alpha1.ConclusiveHold})
	if err != nil || got.Early {
		t.Errorf("onConclusive: Hold promotes early (%v)", err)
	}
}

func TestAStepMayAskForLessThanTheRollout(t *testing.T) {
	base, err := settings.Of(&v1alpha1.Analysis{MinRequests: new(int32(70))})
	if err != nil {
		t.Fatal(err)
	}
	got, err := base.ForStep(&v1alpha1.StepAnalysis{MinRequests: new(int32(5)), OnInconclusive: v1alpha1.InconclusivePromote}, "spec.strategy.steps[0]")
	if err != nil || got.Judge.MinRequests != 5 || got.OnInconclusive != v1alpha1.InconclusivePromote {
		t.Errorf("minRequests %d, onInconclusive %s (%v)", got.Judge.MinRequests, got.OnInconclusive, err)
	}
}

func TestAStepChangesOnlyWhatItNames(t *testing.T) {
	base, err := settings.Of(&v1alpha1.Analysis{
		MaxFalseRollback: "2%", Tolerance: "1pp", MinRequests: new(int32(7)), OnInconclusive: v1alpha1.InconclusivePromote,
		MaxLatency: []v1alpha1.LatencyLimit{{Quantile: "p90", Max: "300ms"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	same, err := base.ForStep(nil, "spec.strategy.steps[0]")
	if diff := cmp.Diff(base, same); err != nil || diff != "" {
		t.Errorf("a step without an analysis: %v %s", err, diff)
	}
	got, err := base.ForStep(&v1alpha1.StepAnalysis{Tolerance: "2pp"}, "spec.strategy.steps[0]")
	want := base
	want.Judge.Tolerance = .02
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("a step with a tolerance: %v %s", err, diff)
	}
	if l := got.Judge.Limits; len(l) != 1 || l[0].Max != 300*time.Millisecond || l[0].Quantile != .9 {
		t.Errorf("limits %+v", l)
	}
}

func TestAMistakeNamesItsField(t *testing.T) {
	for field, a := range map[string]*v1alpha1.Analysis{
		"spec.analysis.maxFalseRollback":       {MaxFalseRollback: "60%"},
		"spec.analysis.tolerance":              {Tolerance: "pp"},
		"spec.analysis.minRequests":            {MinRequests: new(int32(0))},
		"spec.analysis.minSuccessRate":         {MinSuccessRate: "0%"},
		"spec.analysis.maxLatency[0]":          {MaxLatency: []v1alpha1.LatencyLimit{{Quantile: "p99", Max: "0s"}}},
		"spec.analysis.maxLatency[0].quantile": {MaxLatency: []v1alpha1.LatencyLimit{{Quantile: "most", Max: "1s"}}},
	} {
		if _, err := settings.Of(a); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
	s, err := settings.Of(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ForStep(&v1alpha1.StepAnalysis{Tolerance: "99pp"}, "spec.strategy.steps[3]"); err == nil || !strings.HasPrefix(err.Error(), "spec.strategy.steps[3].analysis.tolerance") {
		t.Errorf("error %v", err)
	}
}

// What a user is told to write has to be what the schema of the field takes: 1% and not 0.01.
func TestTheBoundsOfTheJudgeAreSaidInTheUnitOfTheField(t *testing.T) {
	startUp := func(tolerate string) *v1alpha1.Analysis {
		return &v1alpha1.Analysis{Startup: &v1alpha1.Startup{Tolerate: v1alpha1.PercentagePoints(tolerate)}}
	}
	for _, tt := range []struct {
		field, unit string
		analysis    func(share string) *v1alpha1.Analysis
		most        float64
		zero        bool
	}{
		{"maxFalseRollback", "%", func(s string) *v1alpha1.Analysis { return &v1alpha1.Analysis{MaxFalseRollback: v1alpha1.Percent(s)} }, 50, false},
		{"maxBadPromotion", "%", func(s string) *v1alpha1.Analysis { return &v1alpha1.Analysis{MaxBadPromotion: v1alpha1.Percent(s)} }, 50, true},
		{"minSuccessRate", "%", func(s string) *v1alpha1.Analysis { return &v1alpha1.Analysis{MinSuccessRate: v1alpha1.Percent(s)} }, 100, false},
		{"tolerance", "pp", func(s string) *v1alpha1.Analysis { return &v1alpha1.Analysis{Tolerance: v1alpha1.PercentagePoints(s)} }, 50, false},
		{"startup.tolerate", "pp", startUp, 90, true},
	} {
		for share, wanted := range map[float64]bool{0: tt.zero, 0.0001: true, tt.most: true, tt.most + 0.0001: false} {
			text := strconv.FormatFloat(share, 'f', -1, 64) + tt.unit
			_, err := settings.Of(tt.analysis(text))
			if (err == nil) != wanted {
				t.Errorf("%s: %s: %v", tt.field, text, err)
			}
			if err != nil && share <= 100 && !strings.HasSuffix(err.Error(), strconv.FormatFloat(tt.most, 'f', -1, 64)+tt.unit) {
				t.Errorf("%s: %s: the error %q does not end with the most that can be written", tt.field, text, err)
			}
		}
	}
}

func TestTheReactionKnowsEveryPolicyOfTheAPI(t *testing.T) {
	for api, own := range map[v1alpha1.InconclusivePolicy]policy.Inconclusive{
		v1alpha1.InconclusiveHold: policy.WaitForEvidence, v1alpha1.InconclusivePromote: policy.GoOn, v1alpha1.InconclusiveRollBack: policy.GiveUp,
	} {
		if policy.Inconclusive(api) != own {
			t.Errorf("%s is not %s", api, own)
		}
	}
}
