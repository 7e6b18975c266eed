// SPDX-License-Identifier: Apache-2.0

package release

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// TestTheEngineAndTheReplayDecideTheSame feeds both the same windows: what users try out on
// a recording is what the operator does.
func TestTheEngineAndTheReplayDecideTheSame(t *testing.T) {
	seen := map[policy.Action]int{}
	for seed := range uint64(60) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			w := newWorld(t)
			w.ro.Spec.Strategy.Steps = []v1alpha1.Step{{Weight: 20, Hold: "1m"}, {Weight: 50, Hold: "90s"}}
			policies := []v1alpha1.InconclusivePolicy{v1alpha1.InconclusiveHold, v1alpha1.InconclusivePromote, v1alpha1.InconclusiveRollBack}
			w.ro.Spec.Analysis = &v1alpha1.Analysis{OnInconclusive: policies[seed%3]}
			w.ready()
			w.setTemplate("v2")
			w.until("the first weight", func() bool { return w.known().Step != nil && w.known().Step.ProgrammedAt != nil })
			rate := []float64{0, 0, 0.01, 0.3}[seed/3%4]
			requests := []int64{3, 40, 400}[seed/12%3]
			kept := seed%10 != 9 // else half of the weight is no half of the requests
			windows, engine := w.judgeAlone(r, requests, rate, kept)
			plan, err := replay.NewPlan(&w.ro.Spec)
			if err != nil {
				t.Fatal(err)
			}
			var replayed []policy.Action
			if err := replay.Run(plan, windows, func(result replay.Result) error {
				replayed = append(replayed, result.Action)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(engine, replayed); diff != "" {
				t.Errorf("-engine +replay\n%s", diff)
			}
			for _, a := range engine {
				seen[a]++
			}
		})
	}
	for _, a := range []policy.Action{policy.Hold, policy.Step, policy.Promote, policy.RollBack} {
		if seen[a] == 0 {
			t.Errorf("no window meant %s", a)
		}
	}
}

// judgeAlone feeds windows to the engine, in a world where weights are live and pods ready
// at once, until the canary is promoted or rolled back. Where weights are not kept, a fifth of
// the requests goes to the canary.
func (w *world) judgeAlone(r *rand.Rand, requests int64, rate float64, kept bool) (windows []replay.Window, actions []policy.Action) {
	w.t.Helper()
	o := w.observe()
	o.Stored, o.ReportedAt, o.Windows = nil, time.Time{}, nil
	began := w.known().Step.ProgrammedAt.Time
	for range 60 {
		step := o.Rollout.Status.Step.Index
		window := analysis.Window{Start: began, End: began.Add(5 * time.Second), Weight: o.Rollout.Status.Step.Weight}
		rest := 4 * requests
		if kept {
			rest = requests * int64(100-window.Weight) / int64(window.Weight)
		}
		window.Stable, window.Canary = draw(r, rest, 0), draw(r, requests, rate)
		began = window.End
		o.Now, o.Windows = window.End, []analysis.Window{window}
		windows = append(windows, replay.Window{Window: window, T: window.End.Sub(epoch).Seconds(), Step: int(step)})
		d := Decide(o)
		action := meaning(d, step)
		actions = append(actions, action)
		if action == policy.Promote || action == policy.RollBack {
			return windows, actions
		}
		o.Rollout = o.Rollout.DeepCopy()
		o.Rollout.Status = d.Status
		if action == policy.Step {
			w.settle(&o)
		}
	}
	return windows, actions
}

func draw(r *rand.Rand, requests int64, rate float64) analysis.Variant {
	arm := analysis.Variant{Requests: requests}
	for range requests {
		if r.Float64() < rate {
			arm.Failures++
		}
	}
	return arm
}

// meaning is what the decision on a window is in the words of the policy.
func meaning(d state.Decision, step int32) policy.Action {
	st := d.Status
	switch {
	case st.Decision != nil && st.Decision.Action == v1alpha1.ActionRollBack:
		return policy.RollBack
	case st.Decision != nil || st.Step.HoldoutUntil != nil:
		return policy.Promote
	case st.Step.Index > step:
		return policy.Step
	}
	return policy.Hold
}

// settle makes the weight of the present step live.
func (w *world) settle(o *state.Observation) {
	w.t.Helper()
	weight := o.Rollout.Status.Step.Weight
	o.Windows = nil
	for i := range o.ReplicaSets {
		if rs := &o.ReplicaSets[i]; rs.Owner == kit.OwnerSerin {
			rs.Replicas, rs.Existing, rs.Available = 2, 2, 2
		}
	}
	o.Split.Requested, o.Split.Observed, o.Split.Programmed = strategy.Route{Weight: weight}, weight, true
	o.Rollout.Status.Weight = &v1alpha1.WeightStatus{Requested: weight, Observed: &weight, Since: new(metav1.NewMicroTime(o.Now))}
	o.Rollout.Status = Decide(*o).Status
	if o.Rollout.Status.Step.ProgrammedAt == nil {
		w.t.Fatalf("weight %d is not live: %s", weight, readyMessage(o.Rollout))
	}
}
