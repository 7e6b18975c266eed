// SPDX-License-Identifier: Apache-2.0

package course_test

import (
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/course"
	"github.com/serin-dev/serin/analysis/judge"
)

func TestReact(t *testing.T) {
	pass := judge.Result{Verdict: judge.Pass, Reason: judge.ReasonNotWorse}
	early := judge.Result{Verdict: judge.Pass, Reason: judge.ReasonNotWorse, MayPromote: true}
	fail := judge.Result{Verdict: judge.Fail, Reason: judge.ReasonWorseThanStable}
	unclear := judge.Result{Verdict: judge.Inconclusive, Reason: judge.ReasonTooFewRequests}
	for _, tt := range []struct {
		name     string
		policy   course.Policy
		progress course.Progress
		result   judge.Result
		want     course.Action
	}{
		{"a step is held though it passes", "", course.Progress{Held: 59 * time.Second}, pass, course.Hold},
		{"a step that was held and passes is over", "", course.Progress{Held: time.Minute}, pass, course.Step},
		{"after the last step comes the promotion", "", course.Progress{Held: time.Minute, Last: true}, pass, course.Promote},
		{"a failure waits for nothing", "", course.Progress{}, fail, course.RollBack},
		{"a failure after an early promotion rolls back too", "", course.Progress{Promoted: true}, fail, course.RollBack},
		{"after an early promotion there is nothing left to take", "", course.Progress{Held: time.Hour, Last: true, Promoted: true}, early, course.Hold},
		{"evidence promotes before the last step is over", "", course.Progress{Last: true}, early, course.Promote},
		{"a last step that passes without that evidence is held", "", course.Progress{Held: time.Second, Last: true}, pass, course.Hold},
		{"evidence at another step promotes nothing", "", course.Progress{Held: time.Second}, early, course.Hold},
		{"without evidence a step waits", "", course.Progress{Held: time.Hour}, unclear, course.Hold},
		{"Hold is the default", course.WaitForEvidence, course.Progress{Held: time.Hour}, unclear, course.Hold},
		{"without evidence Promote goes on", course.GoOn, course.Progress{Held: time.Minute}, unclear, course.Step},
		{"and promotes after the last step", course.GoOn, course.Progress{Held: time.Minute, Last: true}, unclear, course.Promote},
		{"without evidence RollBack gives up", course.GiveUp, course.Progress{Held: time.Minute}, unclear, course.RollBack},
		{"but not before the step is over", course.GiveUp, course.Progress{Held: 59 * time.Second}, unclear, course.Hold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stage := course.Stage{Weight: 10, Hold: time.Minute, OnInconclusive: tt.policy, Early: true}
			if got := stage.React(tt.progress, tt.result); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAStepWithoutAHoldIsObservedBeforeItIsGivenUp(t *testing.T) {
	unclear := judge.Result{Verdict: judge.Inconclusive, Reason: judge.ReasonMissingData}
	stage := course.Stage{OnInconclusive: course.GiveUp}
	for held, want := range map[time.Duration]course.Action{
		0: course.Hold, course.MinObservation - 1: course.Hold, course.MinObservation: course.RollBack,
	} {
		if got := stage.React(course.Progress{Held: held}, unclear); got != want {
			t.Errorf("after %v: %s, want %s", held, got, want)
		}
	}
}

func TestEvidencePromotesEarlyOnlyWhereThatIsWanted(t *testing.T) {
	early := judge.Result{Verdict: judge.Pass, Reason: judge.ReasonNotWorse, MayPromote: true}
	for wanted, want := range map[bool]course.Action{true: course.Promote, false: course.Hold} {
		stage := course.Stage{Weight: 50, Hold: time.Minute, Early: wanted}
		if got := stage.React(course.Progress{Held: time.Second, Last: true}, early); got != want {
			t.Errorf("wanted %v: %s, want %s", wanted, got, want)
		}
	}
}

func TestAStepWithoutTrafficNeedsNoEvidence(t *testing.T) {
	nothing := judge.Result{Verdict: judge.Inconclusive, Reason: judge.ReasonNoTraffic}
	stage := course.Stage{Hold: time.Minute, Untested: true}
	for held, want := range map[time.Duration]course.Action{59 * time.Second: course.Hold, time.Minute: course.Step} {
		if got := stage.React(course.Progress{Held: held}, nothing); got != want {
			t.Errorf("after %v: %s, want %s", held, got, want)
		}
	}
}
