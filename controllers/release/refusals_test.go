// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// suffered is what the operator makes of a window in which both versions fail so many of 1,000
// requests, and the proxies refuse so many more.
func suffered(t *testing.T, o *state.Observation, failed, refused int64) v1alpha1.RolloutStatus {
	t.Helper()
	start := o.Now
	o.Now = start.Add(5 * time.Second)
	weight := int64(o.Rollout.Status.Step.Weight)
	o.Windows = []analysis.Window{{
		Start: start, End: o.Now, Weight: int32(weight),
		Canary:  analysis.Variant{Requests: 10 * weight, Failures: failed * weight / 100},
		Stable:  analysis.Variant{Requests: 1000 - 10*weight, Failures: failed * (100 - weight) / 100},
		Proxies: analysis.Variant{Requests: 1000 + refused, Failures: refused},
	}}
	o.Rollout = o.Rollout.DeepCopy()
	d := Decide(*o)
	o.Rollout.Status = d.Status
	return d.Status
}

func TestARefusalOfTheProxiesHoldsTheStepAndRollsBackWhenItLasts(t *testing.T) {
	for _, policy := range []v1alpha1.InconclusivePolicy{v1alpha1.InconclusiveHold, v1alpha1.InconclusivePromote, v1alpha1.InconclusiveRollBack} {
		for name, step := range map[string]v1alpha1.Step{
			"at a weight": {Weight: 10, Hold: "10s"}, "without traffic": {Weight: 0, Hold: "10s"}, "by matches": {Weight: 10, Hold: "10s", Matches: []string{"testers"}},
		} {
			t.Run(name+" "+string(policy), func(t *testing.T) {
				o := shared(t, step, policy)
				for i := range 23 {
					st := suffered(t, &o, 0, 200)
					if st.Step == nil || st.Step.Index != 0 || st.Decision != nil {
						t.Fatalf("window %d: the step is over: %s", i, readyMessage(o.Rollout))
					}
					c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionAnalysisPassed)
					if c.Reason != string(judge.ReasonRefusedByProxies) || c.Status != metav1.ConditionUnknown {
						t.Fatalf("AnalysisPassed is %s, %s: %s", c.Status, c.Reason, c.Message)
					}
				}
				st := suffered(t, &o, 0, 200)
				if d := st.Decision; d == nil || d.Action != v1alpha1.ActionRollBack || d.Reason != string(judge.ReasonRefusedByProxies) {
					t.Errorf("%+v: %s", d, readyMessage(o.Rollout))
				}
			})
		}
	}
}

// What befalls both versions is no evidence against the canary, also where it fills the proxies.
func TestAnOutageThatFillsTheProxiesHoldsTheStepAndRollsNothingBack(t *testing.T) {
	o := shared(t, v1alpha1.Step{Weight: 10, Hold: "10m"}, v1alpha1.InconclusiveHold)
	suffered(t, &o, 1, 0)
	for range 60 {
		if st := suffered(t, &o, 500, 4000); st.Decision != nil || st.Step.Index != 0 || st.Analysis.Reason != string(judge.ReasonRefusedByProxies) {
			t.Fatalf("%s: %s", st.Analysis.Reason, readyMessage(o.Rollout))
		}
	}
	for range 80 { // both serve again
		suffered(t, &o, 1, 0)
	}
	if st := o.Rollout.Status; st.Step.Index != 1 || st.Decision != nil {
		t.Errorf("the release does not go on: %s", readyMessage(o.Rollout))
	}
}

func TestAUserDecidesAboutWhatProxiesRefuseWhereThatIsWanted(t *testing.T) {
	o := shared(t, v1alpha1.Step{Weight: 10, Hold: "10s"}, v1alpha1.InconclusiveHold)
	o.Rollout.Spec.Strategy.OnFailure = v1alpha1.OnFailurePause
	for range 30 {
		suffered(t, &o, 0, 200)
	}
	if st := o.Rollout.Status; st.Decision != nil || st.Analysis.Reason != string(judge.ReasonRefusedByProxies) || st.Analysis.Verdict != string(judge.Fail) {
		t.Errorf("%+v: %s", st.Decision, readyMessage(o.Rollout))
	}
}

// That nothing is measured any more does not say that the proxies are well.
func TestProxiesThatCannotBeReadAnyMoreDoNotEndWhatTheyRefused(t *testing.T) {
	for name, step := range map[string]v1alpha1.Step{"at a weight": {Weight: 10, Hold: "10s"}, "without traffic": {Weight: 0, Hold: "10s"}} {
		t.Run(name, func(t *testing.T) {
			o := shared(t, step, v1alpha1.InconclusivePromote)
			for range 5 {
				suffered(t, &o, 0, 200)
			}
			o.Windows = nil
			for range 10 {
				o.Now = o.Now.Add(30 * time.Second)
				o.Rollout = o.Rollout.DeepCopy()
				o.Rollout.Status = Decide(o).Status
				if st := o.Rollout.Status; st.Decision != nil || st.Step == nil || st.Step.Index != 0 {
					t.Fatalf("the step is over: %s", readyMessage(o.Rollout))
				}
			}
			if why := o.Rollout.Status.Analysis.Reason; why != string(judge.ReasonStaleData) {
				t.Errorf("the reason is %s", why)
			}
			for range 6 {
				suffered(t, &o, 0, 0)
			}
			if st := o.Rollout.Status; st.Step.Index != 1 {
				t.Errorf("the step does not go on: %s", readyMessage(o.Rollout))
			}
		})
	}
}
