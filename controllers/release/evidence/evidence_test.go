// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

func TestAWindowIsJudgedOnceAndOnlyInItsRelease(t *testing.T) {
	start := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	window := func(from, to time.Duration) analysis.Window {
		return analysis.Window{Start: start.Add(from), End: start.Add(to), Weight: 10}
	}
	first := window(0, 5*time.Second)
	after, result := judge.Defaults().Next(judge.State{}, first)
	if !after.End().Equal(first.End) {
		t.Fatalf("the first window was not judged: %+v", result)
	}
	s := state.Snapshot{}
	began := metav1.NewTime(start)
	s.Status.Canary = &v1alpha1.VersionStatus{StartedAt: &began}
	for name, test := range map[string]struct {
		window analysis.Window
		want   bool
	}{
		"the last one that was judged":             {first, true},
		"the one after it":                         {window(5*time.Second, 10*time.Second), false},
		"one that began before the release":        {window(-time.Second, 10*time.Second), true},
		"one that began and ended before":          {window(-10*time.Second, -time.Second), true},
		"one that ended before the last one ended": {window(0, 4*time.Second), true},
	} {
		if got := Known(&s, after, test.window); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestSharesAreTestedOnceTheWeightOfTheStepIsLive(t *testing.T) {
	live := new(metav1.NowMicro())
	sharing := strategy.Step{Judge: judge.Config{Shares: true}}
	for name, test := range map[string]struct {
		step   strategy.Step
		live   *metav1.MicroTime
		uneven bool
		want   bool
	}{
		"the weight is live":                       {sharing, live, false, true},
		"it is not live yet":                       {sharing, nil, false, false},
		"a port of the Service has another weight": {sharing, live, true, false},
		"the step is for requests that match":      {strategy.Step{}, live, false, false},
	} {
		s := &state.Snapshot{Settings: strategy.Settings{Steps: []strategy.Step{test.step}}}
		s.Status.Step, s.Delegated.Uneven = &v1alpha1.StepStatus{ProgrammedAt: test.live}, test.uneven
		if got := judgeOf(s).Shares; got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
