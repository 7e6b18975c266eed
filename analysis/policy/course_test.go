// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

func TestReact(t *testing.T) {
	pass := judge.Result{Verdict: judge.Pass, Reason: judge.ReasonNotWorse}
	early := judge.Result{Verdict: judge.Pass, Reason: judge.ReasonNotWorse, MayPromote: true}
	fail := judge.Result{Verdict: judge.Fail, Reason: judge.ReasonWorseThanStable}
	unclear := judge.Result{Verdict: judge.Inconclusive, Reason: judge.ReasonTooFewRequests}
	unkept := judge.Result{Verdict: judge.Inconclusive, Reason: judge.ReasonShareMismatch}
	refused, unread := refusing(judge.ReasonRefusedByProxies), refusing(judge.ReasonStaleData)
	for _, tt := range []struct {
		name     string
		policy   policy.Inconclusive
		progress policy.Progress
		result   judge.Result
		want     policy.Action
	}{
		{"a step is held though it passes", "", policy.Progress{Held: 59 * time.Second}, pass, policy.Hold},
		{"a step that was held and passes is over", "", policy.Progress{Held: time.Minute}, pass, policy.Step},
		{"after the last step comes the promotion", "", policy.Progress{Held: time.Minute, Last: true}, pass, policy.Promote},
		{"a failure waits for nothing", "", policy.Progress{}, fail, policy.RollBack},
		{"a failure after an early promotion rolls back too", "", policy.Progress{Promoted: true}, fail, policy.RollBack},
		{"after an early promotion there is nothing left to take", "", policy.Progress{Held: time.Hour, Last: true, Promoted: true}, early, policy.Hold},
		{"evidence promotes early only once", "", policy.Progress{Last: true, Holdout: true}, early, policy.Hold},
		{"after the holdout comes the rest of the traffic", "", policy.Progress{Last: true, Holdout: true, Ended: true}, early, policy.Promote},
		{"a step that a user ended needs evidence", "", policy.Progress{Held: time.Second, Ended: true}, unclear, policy.Hold},
		{"and is over when it passes", "", policy.Progress{Held: time.Second, Ended: true}, pass, policy.Step},
		{"and is not given up before its hold", policy.GiveUp, policy.Progress{Held: 59 * time.Second, Ended: true}, unclear, policy.Hold},
		{"evidence promotes before the last step is over", "", policy.Progress{Last: true}, early, policy.Promote},
		{"a last step that passes without that evidence is held", "", policy.Progress{Held: time.Second, Last: true}, pass, policy.Hold},
		{"evidence at another step promotes nothing", "", policy.Progress{Held: time.Second}, early, policy.Hold},
		{"without evidence a step waits", "", policy.Progress{Held: time.Hour}, unclear, policy.Hold},
		{"Hold is the default", policy.WaitForEvidence, policy.Progress{Held: time.Hour}, unclear, policy.Hold},
		{"without evidence Promote goes on", policy.GoOn, policy.Progress{Held: time.Minute}, unclear, policy.Step},
		{"and promotes after the last step", policy.GoOn, policy.Progress{Held: time.Minute, Last: true}, unclear, policy.Promote},
		{"without evidence RollBack gives up", policy.GiveUp, policy.Progress{Held: time.Minute}, unclear, policy.RollBack},
		{"weights that are not kept are not raised", policy.GoOn, policy.Progress{Held: time.Hour}, unkept, policy.Hold},
		{"nor is the canary promoted", policy.GoOn, policy.Progress{Held: time.Hour, Last: true, Ended: true}, unkept, policy.Hold},
		{"and not rolled back for them", policy.GiveUp, policy.Progress{Held: time.Hour}, unkept, policy.Hold},
		{"what proxies refuse gives the canary no more", policy.GoOn, policy.Progress{Held: time.Hour}, refused, policy.Hold},
		{"and is no failure of the canary", policy.GiveUp, policy.Progress{Held: time.Hour}, refused, policy.Hold},
		{"that they can't be read any more does not end it", policy.GoOn, policy.Progress{Held: time.Hour}, unread, policy.Hold},
		{"though it is inconclusive", policy.GiveUp, policy.Progress{Held: time.Hour}, unread, policy.RollBack},
		{"but not before the step is over", policy.GiveUp, policy.Progress{Held: 59 * time.Second}, unclear, policy.Hold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stage := policy.Stage{Weight: 10, Hold: time.Minute, OnInconclusive: tt.policy, Early: true}
			if got := stage.React(tt.progress, tt.result); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAStepWithoutAHoldIsObservedBeforeItIsGivenUp(t *testing.T) {
	unclear := judge.Result{Verdict: judge.Inconclusive, Reason: judge.ReasonMissingData}
	stage := policy.Stage{OnInconclusive: policy.GiveUp}
	for held, want := range map[time.Duration]policy.Action{
		0: policy.Hold, policy.MinObservation - 1: policy.Hold, policy.MinObservation: policy.RollBack,
	} {
		if got := stage.React(policy.Progress{Held: held}, unclear); got != want {
			t.Errorf("after %v: %s, want %s", held, got, want)
		}
	}
}

func TestEvidencePromotesEarlyOnlyWhereThatIsWanted(t *testing.T) {
	early := judge.Result{Verdict: judge.Pass, Reason: judge.ReasonNotWorse, MayPromote: true}
	for wanted, want := range map[bool]policy.Action{true: policy.Promote, false: policy.Hold} {
		stage := policy.Stage{Weight: 50, Hold: time.Minute, Early: wanted}
		if got := stage.React(policy.Progress{Held: time.Second, Last: true}, early); got != want {
			t.Errorf("wanted %v: %s, want %s", wanted, got, want)
		}
	}
}

func TestAStepWithoutTrafficNeedsNoEvidence(t *testing.T) {
	nothing := judge.Result{Verdict: judge.Inconclusive, Reason: judge.ReasonNoTraffic}
	stage := policy.Stage{Hold: time.Minute, Untested: true}
	for held, want := range map[time.Duration]policy.Action{59 * time.Second: policy.Hold, time.Minute: policy.Step} {
		if got := stage.React(policy.Progress{Held: held}, nothing); got != want {
			t.Errorf("after %v: %s, want %s", held, got, want)
		}
	}
	for _, why := range []judge.Reason{judge.ReasonRefusedByProxies, judge.ReasonStaleData, judge.ReasonMissingData} {
		if got := stage.React(policy.Progress{Held: time.Hour}, refusing(why)); got != policy.Hold {
			t.Errorf("while the proxies refuse requests, %s: %s", why, got)
		}
	}
}

// refusing is what is known of a release whose proxies refused requests when they were last read.
func refusing(why judge.Reason) judge.Result {
	r := judge.Result{Verdict: judge.Inconclusive, Reason: why}
	r.Refusals.Refused = 100
	return r
}
