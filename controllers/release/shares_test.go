// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// shared is a release at its first step, of which a minute has passed.
func shared(t *testing.T, step v1alpha1.Step, policy v1alpha1.InconclusivePolicy) state.Observation {
	t.Helper()
	w := newWorld(t)
	w.ro.Spec.Strategy.Steps = []v1alpha1.Step{step, {Weight: 50, Hold: "1m"}}
	w.ro.Spec.Analysis = &v1alpha1.Analysis{OnInconclusive: policy, Startup: &v1alpha1.Startup{For: "0s"}}
	w.ready()
	w.setTemplate("v2")
	w.until("the first weight", func() bool { return w.known().Step != nil && w.known().Step.ProgrammedAt != nil })
	o := w.observe()
	o.Stored, o.ReportedAt, o.Windows, o.Now = nil, time.Time{}, nil, o.Now.Add(time.Minute)
	return o
}

// answered is what the operator makes of a window of five seconds. It has nothing to do at once.
func answered(t *testing.T, o *state.Observation, canary, stable int64) v1alpha1.RolloutStatus {
	t.Helper()
	start := o.Now
	o.Now = start.Add(5 * time.Second)
	o.Windows = []analysis.Window{{
		Start: start, End: o.Now, Weight: o.Rollout.Status.Step.Weight,
		Canary: analysis.Variant{Requests: canary}, Stable: analysis.Variant{Requests: stable},
	}}
	o.Rollout = o.Rollout.DeepCopy() // nothing is remembered but the status
	d := Decide(*o)
	o.Rollout.Status = d.Status
	if d.After > 0 && d.After < time.Second && d.Status.Step.Index == 0 {
		t.Fatalf("it looks again after %s: %s", d.After, readyMessage(o.Rollout))
	}
	return d.Status
}

func TestSharesThatAreNotTheWeightHoldTheStepUntilTheyAre(t *testing.T) {
	for _, policy := range []v1alpha1.InconclusivePolicy{v1alpha1.InconclusiveHold, v1alpha1.InconclusivePromote, v1alpha1.InconclusiveRollBack} {
		t.Run(string(policy), func(t *testing.T) {
			o := shared(t, v1alpha1.Step{Weight: 10, Hold: "10s"}, policy)
			for range 20 {
				st := answered(t, &o, 200, 200)
				c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionAnalysisPassed)
				if st.Step == nil || st.Step.Index != 0 || st.Decision != nil {
					t.Fatalf("the step is over: %s", readyMessage(o.Rollout))
				}
				if c.Reason != string(judge.ReasonShareMismatch) || c.Status != metav1.ConditionUnknown || !strings.Contains(c.Message, "look for sessions") {
					t.Fatalf("AnalysisPassed is %s, %s: %s", c.Status, c.Reason, c.Message)
				}
			}
			if st := answered(t, &o, 100, 900); st.Step.Index != 1 {
				t.Errorf("the step goes on although its weight is kept: %s", readyMessage(o.Rollout))
			}
		})
	}
}

func TestAStepWhoseRequestsAreNotSharedByOneWeightIsNotTested(t *testing.T) {
	for name, test := range map[string]struct {
		step   v1alpha1.Step
		change func(*state.Observation)
	}{
		"requests that match":    {v1alpha1.Step{Weight: 10, Hold: "10s", Matches: []string{"testers"}}, func(*state.Observation) {}},
		"mirrored requests":      {v1alpha1.Step{Weight: 10, Hold: "10s", Mirror: new(int32(50))}, func(*state.Observation) {}},
		"ports of other weights": {v1alpha1.Step{Weight: 10, Hold: "10s"}, func(o *state.Observation) { o.Delegated.Uneven = true }},
	} {
		t.Run(name, func(t *testing.T) {
			o := shared(t, test.step, v1alpha1.InconclusiveHold)
			test.change(&o)
			if st := answered(t, &o, 200, 200); st.Step.Index != 1 {
				t.Errorf("the step goes on: %s", readyMessage(o.Rollout))
			}
		})
	}
}

func TestSharesOfTheStepBeforeAreNotTestedByTheNext(t *testing.T) {
	o := shared(t, v1alpha1.Step{Weight: 10, Hold: "10s", Matches: []string{"testers"}}, v1alpha1.InconclusiveHold)
	answered(t, &o, 200, 200)
	for range 3 { // the next step waits for its weight
		if st := answered(t, &o, 200, 200); st.Step.ProgrammedAt != nil || st.Analysis.Reason == string(judge.ReasonShareMismatch) {
			t.Fatalf("%s: %s", st.Analysis.Reason, st.Analysis.Message)
		}
	}
}
